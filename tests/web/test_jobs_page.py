"""The jobs page: filters that are the address, how the last runs went, and what it says when a part is missing."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from onthedot.api.app import App
from onthedot.clock import FakeClock
from onthedot.errors import StoreUnavailable
from tests.api.conftest import JOB, client_of, serving
from tests.api.executor import FAILED, OK, TinyNode

ONCE = {"policy": {"retry": {"attempts": 1}}}


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async with serving(sqlite_url, fake_clock) as app:
        yield app


@pytest.fixture
async def site(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


def titles(text: str) -> set[str]:
    return set(re.findall(r'class="title"[^>]*>([^<]+)<', text))


async def test_every_filter_is_in_the_address_and_ended_jobs_are_hidden(site, app, fake_clock):
    node = TinyNode(app.context.service.store)
    await node.register()
    for spec in (
        {"key": "good", "schedule": {"every": "1m"}, "tags": ["a"]},
        {"key": "once", "schedule": {"in": "30s"}},
        {"key": "idle", "owner": "ann", "paused": True},
        {"key": "told", "target": {"type": "command", "command": "backup"}},
    ):
        assert (await site.post("/v1/jobs", json={**JOB, **ONCE, **spec})).status_code == 201
    await fake_clock.advance(45)
    await node.work(OK)
    await fake_clock.advance(20)
    await node.work(FAILED)
    for query, expected in (
        ("", {"good", "idle", "told"}),
        ("status=all", {"good", "idle", "told", "once"}),
        ("status=ended", {"once"}),
        ("status=paused", {"idle"}),
        ("owner=ann", {"idle"}),
        ("tag=a", {"good"}),
        ("target=command", {"told"}),
        ("schedule=every", {"good"}),
        ("failing=true", {"good"}),
        ("last_status=FAILED", {"good"}),
        ("never_ran=true", {"idle", "told"}),
        ("never_ran=true&owner=ann&late=&q=", {"idle"}),
    ):
        page = await site.get(f"/jobs?{query}")
        assert (page.status_code, titles(page.text)) == (200, expected), query
    chosen = (await site.get("/jobs?target=command&failing=true")).text
    assert '<option value="command" selected>' in chosen
    assert '<option value="every">Interval</option>' in chosen
    assert 'name="failing" value="true" checked' in chosen
    assert '<details class="more" open>' in chosen
    assert 'href="/jobs?target=command&amp;failing=true&amp;status=all">Search ended jobs, too' in chosen


async def test_the_filter_of_the_api_for_ended_jobs_leads_to_that_of_the_page(site):
    for query, to in (
        ("ended=true", "/jobs?status=ended"),
        ("q=a%26b&ended=true", "/jobs?q=a%26b&status=ended"),
        ("ended=false", "/jobs"),
        ("ended=false&status=paused", "/jobs?status=paused"),
    ):
        answer = await site.get(f"/jobs?{query}")
        assert (answer.status_code, answer.headers["location"]) == (303, to)
        assert (await site.get(to)).status_code == 200
    assert (await site.get("/jobs?ended=maybe")).status_code == 422


async def test_the_last_runs_are_a_strip_with_words_and_the_reason_is_there(site, app, fake_clock):
    node = TinyNode(app.context.service.store)
    await node.register()
    await site.post("/v1/jobs", json={**JOB, **ONCE, "schedule": {"every": "1m"}})
    for outcome in (OK, OK, FAILED):
        await fake_clock.advance(60)
        await node.work(outcome)
    text = (await site.get("/jobs")).text
    assert re.findall(r'<rect class="(\w+)"', text) == ["DONE", "DONE", "FAILED"]
    assert 'aria-label="Last 3 runs: 1 failed, 2 done"' in text
    assert re.search(
        r'<summary class="badge FAILED" title="([^"]+)">failed</summary><span class="reason-text">\1<', text
    )
    assert "avg 12 ms" in text


async def test_a_one_off_whose_run_has_not_ended_is_under_way(site, app, fake_clock):
    node = TinyNode(app.context.service.store)
    await node.register()
    await site.post("/v1/jobs", json={**JOB, **ONCE, "schedule": {"in": "1s"}})
    await fake_clock.advance(2)
    assert await node.claim()
    assert '<span class="none">under way</span>' in (await site.get("/jobs")).text


async def test_headings_sort_up_and_down(site):
    for key in ("b", "a", "c"):
        await site.post("/v1/jobs", json={**JOB, "key": key})
    up = (await site.get("/jobs?sort=name&status=active")).text
    assert re.findall(r'class="title"[^>]*>([^<]+)<', up) == ["a", "b", "c"]
    assert '<th aria-sort="ascending"><a href="/jobs?sort=-name&amp;status=active">Job<' in up
    assert 'type="hidden" name="sort" value="name"' in up
    down = (await site.get("/jobs?sort=-name")).text
    assert re.findall(r'class="title"[^>]*>([^<]+)<', down) == ["c", "b", "a"]


async def test_a_pause_says_why_and_until_when(site):
    made = (await site.post("/v1/jobs", json=JOB)).json()
    body = {"note": "<moving> house", "until": "2030-01-01T00:00:00Z"}
    assert (await site.post(f"/v1/jobs/{made['id']}/pause", json=body)).status_code == 200
    text = (await site.get("/jobs")).text
    assert "Paused: &lt;moving&gt; house (until <time" in text
    assert "2030-01-01 00:00:00 UTC" in text


async def test_the_list_stands_when_the_last_runs_can_not_be_loaded(site, app, monkeypatch):
    async def away(*_: object) -> None:
        raise StoreUnavailable("too slow today")

    await site.post("/v1/jobs", json=JOB)
    monkeypatch.setattr(app.context.service, "recent_runs", away)
    page = await site.get("/jobs")
    assert page.status_code == 200
    assert titles(page.text) == {"nightly"}
    assert "This part could not be loaded: the last runs; too slow today" in page.text


async def test_selected_jobs_are_asked_about_and_then_acted_on_by_an_operation(site, app):
    ids = [(await site.post("/v1/jobs", json={**JOB, "key": key, "name": f"<b>{key}"})).json()["id"] for key in "abc"]
    text = (await site.get("/jobs")).text
    assert f'name="id" value="{ids[0]}" form="selection"' in text
    chosen = {"id": [str(each) for each in ids[:2]], "verb": "pause", "back": "/jobs?status=all"}
    asked = (await site.post("/jobs/selected", data=chosen)).text
    assert "Pause 2 jobs?" in asked
    assert "<li>&lt;b&gt;a</li>" in asked
    assert 'name="typed"' not in asked
    assert (await site.get("/v1/jobs?status=paused")).json()["items"] == []

    wrong = await site.post("/jobs/selected", data={**chosen, "confirmed": "true", "note": "why not", "until": "soon"})
    assert wrong.status_code == 422
    assert 'value="why not"' in wrong.text
    assert 'aria-invalid="true" aria-describedby="e-until"' in wrong.text
    assert (await site.get("/v1/operations")).json()["items"] == []

    await _carry_out(site, app, {**chosen, "note": "why not"}, "Pausing 2 jobs")
    assert (await site.get("/jobs?status=all")).text.count("Paused: why not") == 2
    tags = {**chosen, "verb": "tag", "add": "new, <i>", "remove": JOB["tags"][0] if JOB.get("tags") else "old"}
    await _carry_out(site, app, tags, "Tagging 2 jobs")
    assert {job["id"] for job in (await site.get("/v1/jobs?tag=new")).json()["items"]} == set(ids[:2])
    assert "Maximum per second" in asked
    fast = await site.post("/jobs/selected", data={**chosen, "confirmed": "true", "rate": "10001"})
    assert (fast.status_code, 'aria-describedby="e-rate"' in fast.text) == (422, True)
    slow = await _carry_out(site, app, {**chosen, "verb": "resume", "rate": "7"}, "Resuming 2 jobs")
    assert "at most 7 per second" in slow
    await _carry_out(site, app, {**chosen, "verb": "resume"}, "Resuming 2 jobs")
    (again,) = (await site.get("/v1/operations?limit=1")).json()["items"]
    assert '2<div class="sub">not paused</div>' in (await site.get(f"/operations/{again['id']}")).text
    none = await site.post("/jobs/selected", data={**chosen, "verb": "tag", "confirmed": "true"})
    assert (none.status_code, "Has no tag; accepted: tags to add" in none.text) == (422, True)
    for verb, told in (("resume", "Resuming 2 jobs"), ("run", "Running 2 jobs"), ("delete", "Deleting 2 jobs")):
        await _carry_out(site, app, {**chosen, "verb": verb}, told)
    assert [job["id"] for job in (await site.get("/v1/jobs")).json()["items"]] == ids[2:]


async def test_all_that_match_are_counted_and_confirmed_by_their_number(site, app):
    specs = [{**JOB, "key": f"j{place}", "tags": ["many"]} for place in range(101)]
    await site.post("/v1/jobs/batch", json=[*specs, {**JOB, "key": "other"}])
    assert (
        '<input type="hidden" name="filter" value="tag=many&amp;sort=name">'
        in (await site.get("/jobs?tag=many&sort=name")).text
    )
    few = (await site.post("/jobs/selected", data={"verb": "pause", "all": "true", "filter": "q=other"})).text
    assert "Pause 1 job?" in few
    assert "All jobs with text <b>other</b> that have not ended" in few
    chosen = {"verb": "pause", "all": "true", "filter": "tag=many&sort=name&q="}
    asked = (await site.post("/jobs/selected", data=chosen)).text
    for expected in ("Pause 101 jobs?", "and 91 others", "Type 101 to confirm", 'name="shown" value="101"'):
        assert expected in asked, expected
    for typed in ("", "100"):
        refused = await site.post(
            "/jobs/selected", data={**chosen, "confirmed": "true", "shown": "101", "typed": typed}
        )
        assert refused.status_code == 422
        assert "Does not match the number of matching items (101)" in refused.text
    assert (await site.get("/v1/operations")).json()["items"] == []
    page = await _carry_out(site, app, {**chosen, "shown": "101", "typed": "101"}, "Pausing 101 jobs")
    assert 'href="/jobs?tag=many"' in page
    states = {job["key"]: job["state"] for job in (await site.get("/v1/jobs?limit=500")).json()["items"]}
    assert states.pop("other") == "active"
    assert set(states.values()) == {"paused"}
    nobody = await site.post("/jobs/selected", data={**chosen, "filter": "tag=none"})
    assert nobody.status_code == 303
    assert "No jobs match any more" in (await site.get("/jobs")).text
    assert (await site.post("/jobs/selected", data={**chosen, "filter": "tog=none"})).status_code == 422


async def _carry_out(site, app, chosen, told) -> str:
    started = await site.post("/jobs/selected", data={**chosen, "confirmed": "true"})
    assert started.status_code == 303, started.text
    address = started.headers["location"]
    assert address.startswith("/operations/")
    page: str = (await site.get(address)).text
    assert told in page
    for _ in range(20):
        await app.context.service.store.work_off_operation("n1")
    assert (await site.get(f"/v1{address}")).json()["state"] == "done"
    return page


@pytest.mark.parametrize(
    "data", [{"verb": "explode", "id": "1"}, {"verb": "run", "id": "x"}, {"verb": "run", "ids": "1"}]
)
async def test_a_selection_that_is_wrong_changes_nothing(site, data):
    answer = await site.post("/jobs/selected", data={**data, "confirmed": "true"})
    assert (answer.status_code, answer.headers["content-type"]) == (422, "text/html; charset=utf-8")


async def test_nothing_selected_is_said(site):
    assert (await site.post("/jobs/selected", data={"verb": "run"})).headers["location"] == "/jobs"
    assert "Select jobs first" in (await site.get("/jobs")).text
