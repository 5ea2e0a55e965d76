"""The pages of dead letters and of operations."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator

import httpx
import pytest

from onthedot.api.app import App
from onthedot.clock import FakeClock
from onthedot.model.run import Outcome
from onthedot.web.dead_groups import cause_of
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


async def test_letters_are_grouped_by_cause_and_hour(site, letters):
    page = await text_of(site, "/dead")
    found = re.findall(r'<tr id="group-(\w+)">.*?<a class="title"[^>]*>(.*?)</a>.*?class="num"><div>(\d+)<', page)
    assert [(cause, count) for _, cause, count in found] == [("timed out in request …", "3"), (f"disk {EVIL}", "1")]
    page = await text_of(site, f"/dead?group={found[1][0]}")
    assert "In this group" in page
    assert [each for each in letters if f"letter-{each}" in page] == [letters[2]]
    assert "no longer among the newest" in await text_of(site, "/dead?group=none")
    assert "No dead letters" in await text_of(site, "/dead?job_id=77")


async def test_one_is_redriven_at_once(site, letters):
    answer = await site.post("/dead/redrive-one", data={"id": letters[0], "back": "/dead"})
    assert answer.status_code == 303
    assert f'of <a href="/runs/{letters[0]}">' in await text_of(site, answer.headers["location"])
    page = await text_of(site, "/dead")
    assert f"letter-{letters[0]}" not in page
    assert f"letter-{letters[1]}" in page


@pytest.mark.parametrize("choice", ["group", "selection", "all"])
async def test_some_are_redriven_as_an_operation_a_few_first(site, letters, choice):
    page = await text_of(site, "/dead")
    group = re.findall(r'<tr id="group-(\w+)">', page)[0]
    chosen = {"group": {"group": group}, "selection": {"id": letters[:2]}, "all": {"all": "true"}}[choice]
    question = checked(await site.post("/dead/redrive", data={**chosen, "back": "/dead"}), 200)
    said = {"group": "3 dead letters", "selection": "2 dead letters", "all": "all dead letters"}[choice]
    assert f"Redrive {said}?" in question
    ids = re.findall(r'name="id" value="([^"]+)"', question)
    assert len(ids) == {"group": 3, "selection": 2, "all": 0}[choice]
    sent = {"id": ids} if ids else {"all": "true"}
    wrong = await site.post("/dead/redrive", data={**sent, "confirmed": "true", "first": "0", "rate": "2"})
    assert "accepted: an integer from 1 to 1000" in checked(wrong, 422)
    fields = {"confirmed": "true", "first": "1", "stop_at_failures": "1", "rate": "5"}
    answer = await site.post("/dead/redrive", data={**sent, **fields})
    assert answer.status_code == 303, answer.text
    address = answer.headers["location"]
    page = await text_of(site, address)
    for expected in ("It is running", "at most 5 per second", "first <b>1</b>", ">Abort<", f"of {len(ids) or 4}"):
        assert expected in page, expected
    assert f'href="{address}"' in await text_of(site, "/operations")
    assert (await site.post(f"{address}/abort", data={})).status_code == 303
    assert "It is aborted" in await text_of(site, address)


async def test_nothing_selected_is_said(site):
    answer = await site.post("/dead/redrive", data={"back": "/dead"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/dead")
    assert "Select dead letters first" in await text_of(site, "/dead")
    assert "No operations" in await text_of(site, "/operations")
    assert (await site.post("/dead/redrive", data={"id": "x"})).status_code == 422


def test_what_varies_is_no_cause():
    class Failed:
        error, reason = "job 3f2a9c0d1e2b4a5f failed at 0x7f0012345678: port 5003, status 503\nmore", None

    assert cause_of(Failed()) == "job … failed at …: port 5003, status 503"  # type: ignore[arg-type]
