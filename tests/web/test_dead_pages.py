"""The pages of dead letters and of operations."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from urllib.parse import parse_qsl

import httpx
import pytest

from onthedot.api.app import App
from onthedot.clock import FakeClock
from onthedot.model.run import Outcome
from tests.api.conftest import JOB, client_of, serving
from tests.api.executor import TinyNode

EVIL = "<script>alert(1)</script>"


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async with serving(sqlite_url, fake_clock) as app:
        yield app


@pytest.fixture
async def site(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


@pytest.fixture
async def letters(app: App, site: httpx.AsyncClient, fake_clock: FakeClock) -> list[str]:
    """Three that failed of one cause, one of another."""
    node = TinyNode(app.context.service.store)
    await node.register()
    await site.post("/v1/jobs", json={**JOB, "schedule": {"every": "1m"}, "policy": {"retry": {"attempts": 1}}})
    ids: list[str] = []
    for error in (
        "timed out in request 1234567",
        "timed out in request 7654321",
        f"disk {EVIL}",
        "timed out in request 99999",
    ):
        await fake_clock.advance(60)
        ids += await node.work(Outcome(kind="error", error=error))
    return ids


async def text_of(site: httpx.AsyncClient, address: str, status: int = 200) -> str:
    return checked(await site.get(address), status)


def checked(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert EVIL not in answer.text
    return re.sub(r"\s+", " ", html.unescape(answer.text))


def groups_of(page: str) -> list[tuple[str, str, str]]:
    """Address, cause and number of each."""
    found = re.findall(r'<a class="title" href="(/dead\?cause[^"]+)"[^>]*>(.*?)</a>.*?class="num"><div>(\d+)<', page)
    return [(address, cause, count) for address, cause, count in found]


async def test_letters_are_grouped_by_their_stored_cause_and_hour(site, app, letters, fake_clock):
    node = TinyNode(app.context.service.store, "other")
    await node.register()
    await fake_clock.advance(3600)
    later = await node.work(Outcome(kind="error", error="timed out in request 4242424"))
    page = await text_of(site, "/dead")
    causes = {each["cause"] for each in (await site.get("/v1/dead")).json()["items"]}
    found = groups_of(page)
    assert {cause for _, cause, _ in found} == causes
    assert [count for _, _, count in found] == ["1", "3", "1"]
    assert found[0][1] == found[1][1], "the same cause in another hour is another group"
    page = await text_of(site, found[2][0])
    assert "In this group" in page
    assert [each for each in [*letters, *later] if f"letter-{each}" in page] == [letters[2]]
    assert "No dead letters" in await text_of(site, "/dead?cause=none")
    assert "No dead letters" in await text_of(site, "/dead?job_id=77")
    hours = (await site.get("/v1/dead/groups?window=hour")).json()["items"]
    assert [each["count"] for each in hours] == [1, 3, 1]
    assert (await site.get("/v1/dead/groups?window=week")).status_code == 422


async def test_a_group_of_one_job_has_its_name_although_none_of_its_letters_is_listed(site, app, letters, fake_clock):
    node = TinyNode(app.context.service.store, "other")
    await node.register()
    paused = await site.post("/v1/jobs/by-key/nightly/pause", json={})
    assert paused.status_code == 200, paused.text
    once = {"every": "1m", "count": 1}
    report = {**JOB, "key": "report", "name": "Monthly report", "schedule": once, "policy": {"retry": {"attempts": 1}}}
    assert (await site.post("/v1/jobs", json=report)).status_code == 201
    await fake_clock.advance(60)
    (failed,) = await node.work(Outcome(kind="error", error="no paper"))
    found = groups_of(await text_of(site, "/dead"))
    assert found[0][1] == "no paper"
    page = await text_of(site, next(address for address, cause, _ in found if cause.startswith("disk")))
    assert failed not in page
    assert '<td data-label="Jobs"><div>Monthly report</div></td>' in page
    assert page.count('<td data-label="Jobs"><div>nightly</div></td>') == 2
    assert "1 job<" not in page


async def test_discarded_with_a_note_and_listed_as_such(site, app, letters):
    group = groups_of(await text_of(site, "/dead"))[0]
    fields = dict(parse_qsl(group[0].partition("?")[2]))
    question = checked(await site.post("/dead/discard", data={**fields, "all": "true", "back": "/dead"}), 200)
    assert "Discard 3 dead letters?" in question
    sent = {**fields, "all": "true", "confirmed": "true", "note": "gone for good"}
    answer = await site.post("/dead/discard", data=sent)
    assert answer.headers["location"].startswith("/operations/"), answer.text
    await app.context.service.store.work_off_operation("n1")
    assert len((await site.get("/v1/dead")).json()["items"]) == 1
    one = await site.post("/dead/discard", data={"id": letters[2], "confirmed": "true", "note": EVIL, "back": "/dead"})
    assert one.headers["location"] == "/dead"
    page = await text_of(site, "/dead")
    assert "Discarded 1 dead letter" in page
    assert "No dead letters" in page
    closed = await text_of(site, "/dead?discarded=true")
    assert closed.count("gone for good") == 3
    assert [each for each in letters if f"letter-{each}" in closed] == letters


async def test_edited_and_tried_again_with_other_params(site, letters):
    form = await text_of(site, f"/runs/{letters[0]}/retry?back=/dead")
    assert "Edit and retry run" in form
    wrong = await site.post(f"/runs/{letters[0]}/retry", data={"params": "[1]"})
    assert "Not an object; accepted: a JSON object" in checked(wrong, 422)
    answer = await site.post(f"/runs/{letters[0]}/retry", data={"params": '{"day": 2}'})
    new = answer.headers["location"].removeprefix("/runs/")
    assert (await site.get(f"/v1/runs/{new}")).json()["params"] == {"day": 2}
    assert (await site.get(f"/v1/runs/{letters[0]}")).json()["status"] == "FAILED"
    assert letters[0] not in {each["id"] for each in (await site.get("/v1/dead")).json()["items"]}


async def test_one_is_redriven_at_once(site, letters):
    answer = await site.post("/dead/redrive-one", data={"id": letters[0], "back": "/dead"})
    assert answer.status_code == 303
    assert f'of <a href="/runs/{letters[0]}">' in await text_of(site, answer.headers["location"])
    page = await text_of(site, "/dead")
    assert f"letter-{letters[0]}" not in page
    assert f"letter-{letters[1]}" in page


@pytest.mark.parametrize("choice", ["group", "selection", "all"])
async def test_some_are_redriven_as_an_operation_a_few_first(site, letters, choice):
    group = dict(parse_qsl(groups_of(await text_of(site, "/dead"))[0][0].partition("?")[2]))
    chosen = {"group": {**group, "all": "true"}, "selection": {"id": letters[:2]}, "all": {"all": "true"}}[choice]
    question = checked(await site.post("/dead/redrive", data={**chosen, "back": "/dead"}), 200)
    number = {"group": 3, "selection": 2, "all": 4}[choice]
    assert f"Redrive {number} dead letters?" in question
    ids = re.findall(r'name="id" value="([^"]+)"', question)
    assert len(ids) == {"group": 0, "selection": 2, "all": 0}[choice]
    sent = chosen
    wrong = await site.post("/dead/redrive", data={**sent, "confirmed": "true", "first": "0", "rate": "2"})
    assert "accepted: an integer from 1 to 1000" in checked(wrong, 422)
    fields = {"confirmed": "true", "first": "1", "stop_at_failures": "1", "rate": "5"}
    answer = await site.post("/dead/redrive", data={**sent, **fields})
    assert answer.status_code == 303, answer.text
    address = answer.headers["location"]
    page = await text_of(site, address)
    for expected in ("It is running", "at most 5 per second", "first <b>1</b>", ">Abort<", f"of {number}"):
        assert expected in page, expected
    assert f'href="{address}"' in await text_of(site, "/operations")
    assert ">Pause<" in page
    assert (await site.post(f"{address}/pause", data={})).headers["location"] == address
    page = await text_of(site, address)
    for expected in ("It is paused", ">Resume<", ">Abort<"):
        assert expected in page, expected
    assert (await site.post(f"{address}/resume", data={})).status_code == 303
    assert "It is running" in await text_of(site, address)
    assert (await site.post(f"{address}/abort", data={})).status_code == 303
    assert "It is aborted" in await text_of(site, address)


async def test_nothing_selected_is_said(site):
    answer = await site.post("/dead/redrive", data={"back": "/dead"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/dead")
    assert "Select dead letters first" in await text_of(site, "/dead")
    assert "No operations" in await text_of(site, "/operations")
    assert (await site.post("/dead/redrive", data={"id": "x"})).status_code == 422
