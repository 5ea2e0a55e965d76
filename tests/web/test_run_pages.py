"""The pages of runs: the list with its filters, and one run with its story, request, log and actions."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from onthedot.api.app import App
from onthedot.clock import FakeClock
from onthedot.model.destination import DestinationLoad
from onthedot.model.instant import format_instant
from onthedot.model.key import ApiKeySpec
from onthedot.model.node import NodeLoad
from onthedot.model.run import Outcome
from onthedot.store import TurnedAway
from onthedot.store.runs import run_page
from onthedot.web.words import node_name
from tests.api.conftest import JOB, client_of, serving
from tests.api.executor import OK, TinyNode

EVIL = "<script>alert(1)</script>"
BAD = Outcome(kind="error", error=f"503 {EVIL}", detail={"status_code": 503, "response": f"later {EVIL}"})


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async with serving(sqlite_url, fake_clock) as app:
        yield app


@pytest.fixture
async def site(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


@pytest.fixture
async def node(app: App) -> TinyNode:
    node = TinyNode(app.context.service.store)
    await node.register()
    return node


@pytest.fixture
async def ran(site, node, fake_clock) -> tuple[str, str]:
    """A job that ran twice: well, and not."""
    target = {**JOB["target"], "headers": {"Authorization": "Bearer s3cret"}, "body": {"at": {"$": "scheduled_for"}}}
    made = {**JOB, "name": EVIL, "schedule": {"every": "1m"}, "policy": {"retry": {"attempts": 1}}, "target": target}
    assert (await site.post("/v1/jobs", json=made)).status_code == 201
    ids: list[str] = []
    for outcome in (OK, BAD):
        await fake_clock.advance(60)
        ids += await node.work(outcome, log=f"first line\nsecond {EVIL}\n")
    return ids[0], ids[1]


async def text_of(site: httpx.AsyncClient, address: str, status: int = 200) -> str:
    answer = await site.get(address)
    assert answer.status_code == status, answer.text
    assert EVIL not in answer.text
    assert not re.search(r"\sstyle=|\son\w+=", answer.text)
    return re.sub(r"\s+", " ", html.unescape(answer.text))


async def test_the_list_shows_runs_and_finds_them_by_each_filter(site, ran):
    good, bad = ran
    page = await text_of(site, "/runs")
    assert page.index(bad) < page.index(good)
    for expected in ("503", "by its schedule", "tiny", "12 ms", 'href="/runs"', f">{EVIL}</a>", "<code>nightly</code>"):
        assert expected in page
    for list_of_runs in ("/", "/dead"):
        assert f">{EVIL}</a>" in await text_of(site, list_of_runs)
    for query, found in (
        ("status=DONE", [good]),
        ("q=503", [bad]),
        ("key=nightly&trigger=schedule", [good, bad]),
        ("node=tiny-1&status=FAILED", [bad]),
        ("since=2023-11-14T22:15:00Z", [bad]),
        ("late=true", []),
        ("key=other", []),
    ):
        page = await text_of(site, f"/runs?{query}")
        assert [each for each in ran if f"/runs/{each}" in page] == found, query
    assert "No runs found" in page
    assert "unknown parameter" in await text_of(site, "/runs?nope=1", 422)


async def test_due_are_those_whose_time_has_come_and_no_others(site, node, fake_clock):
    every_minute = {"schedule": {"every": "1m"}, "policy": {"retry": {"attempts": 3, "backoff": "1h"}}}
    again = ""
    for key in ("again", "waits"):
        assert (await site.post("/v1/jobs", json={**JOB, **every_minute, "key": key})).status_code == 201
        if key == "again":
            await fake_clock.advance(60)
            (again,) = await node.work(Outcome(kind="timeout", retryable=True, error="timed out"))
    waiting = (await site.post("/v1/jobs/by-key/waits/run")).json()["id"]
    assert again in await text_of(site, "/runs?status=PENDING")
    due = await text_of(site, "/runs?due=true")
    assert f"/runs/{waiting}" in due
    assert again not in due, "it is tried again in an hour"
    assert 'name="due" value="true" checked' in due
    assert 'href="/runs?due=true"' in await text_of(site, "/")
    assert "No runs found" in await text_of(site, "/runs?due=true&status=DONE")


async def test_an_empty_list_says_so_and_one_that_looked_at_enough_says_that(site, ran, monkeypatch):
    monkeypatch.setattr(run_page, "SCANNED_RUNS", 1)
    page = await text_of(site, "/runs?status=DONE")
    assert "No runs found so far" in page
    (link,) = re.findall(r'href="([^"]+)" rel="next"', page)
    assert ran[0] in await text_of(site, link)


async def test_no_runs_at_all(site):
    assert "<h2>No runs</h2>" in await text_of(site, "/runs")


async def test_a_failed_run_tells_why_what_next_and_how_it_was_when_it_went_well(site, ran):
    good, bad = ran
    page = await text_of(site, f"/runs/{bad}")
    for expected in (
        "503",
        "Next step:",
        "Look at the log of the receiver",
        "Attempt 1 sent",
        "<b>Claimed</b>",
        "<b>Answered</b>",
        'title="2023-11-14 22:15:20.000 UTC" data-absolute data-ms>2023-11-14 22:15:20.000 UTC<',
        "on tiny",
        "Recorded as failed",
        "Beside the last good run",
        f'href="/runs/{good}"',
        "Copy as curl",
        "curl -i -X POST http://127.0.0.1:5003/",
        "authorization: ••••••",
        '"at": "2023-11-14T22:15:20.000Z"',
        "Status 503",
        "first line second",
        f'download="{bad}.log"',
    ):
        assert expected in page, expected
    assert "s3cret" not in page
    compared = page[page.index("Beside the last good run") :]
    assert 'class="differs"><td>Status <span class="mark" title="differs">' in compared
    assert "<tr><td>Scheduled</td>" in compared
    found = await text_of(site, f"/runs/{bad}?log=SECOND")
    assert ("first line" in found, ">second" in found) == (False, True)
    live = await site.get(f"/runs/{bad}", headers={"x-onthedot-live": "1"})
    assert live.status_code == 200
    assert "Beside the last good run" in live.text
    assert "<html" not in live.text
    page = await text_of(site, f"/runs/{good}")
    assert "It succeeded" in page
    assert "Beside" not in page
    answer = await site.get("/runs/1-1", headers={"accept": "text/html"})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")


async def test_two_runs_are_compared_the_last_good_one_by_default(site, ran):
    good, bad = ran
    page = await text_of(site, f"/runs/{bad}/compare")
    for expected in ("the last good one before it", "503", "first line second", "What happened", "Swap"):
        assert expected in page, expected
    assert f'href="/runs/{good}/compare?with={bad}"' in page
    answer = (await site.get(f"/v1/runs/{bad}/compare")).json()
    assert (answer["run"]["id"], answer["other"]["id"], answer["run_version"]) == (bad, good, 1)
    told = {each["field"]: (each["this"], each["other"]) for each in answer["differences"]}
    assert told["status"] == ("FAILED", "DONE")
    assert "request.headers.webhook-id" not in told
    assert "request.body.at" not in told, "it is the slot of each"
    swapped = await text_of(site, f"/runs/{good}/compare?with={bad}")
    assert swapped.index(f"<code>{good}</code></a></th>") < swapped.index(f"<code>{bad}</code></a></th>")
    assert "the last good one before it" not in swapped
    assert f'href="/runs/{bad}/compare"' in await text_of(site, "/runs?status=FAILED")
    assert f'href="/runs/{bad}/compare"' in await text_of(site, f"/runs/{bad}")
    assert "No good run to compare with" in await text_of(site, f"/runs/{good}/compare")
    assert (await site.get(f"/v1/runs/{good}/compare")).status_code == 404
    assert "the ID of a run" in await text_of(site, f"/runs/{bad}/compare?with=x", 422)
    assert (await site.get(f"/runs/{bad}/compare?with=9-9")).status_code == 404


async def test_any_run_can_be_chosen_to_be_compared_with(site, ran):
    good, bad = ran
    job_id = bad.partition("-")[0]
    assert f'href="/runs?job_id={job_id}&compare={bad}"' in await text_of(site, f"/runs/{bad}")
    page = await text_of(site, f"/runs?job_id={job_id}&compare={bad}")
    assert "Choose the run to compare with" in page
    assert f'href="/runs/{bad}/compare?with={good}"' in page
    assert f"with={bad}" not in page
    assert f'name="compare" value="{bad}"' in page, "it is kept while one filters"


async def test_the_bundle_is_offered_as_a_file(site, ran):
    page = await text_of(site, f"/runs/{ran[1]}")
    assert f'href="/v1/runs/{ran[1]}/bundle" download="onthedot-run-{ran[1]}.json"' in page


async def test_a_run_is_retried_and_cancelled_from_its_page(site, ran):
    _, bad = ran
    answer = await site.post(f"/runs/{bad}/retry", data={"back": "/runs"})
    assert answer.status_code == 303
    new = answer.headers["location"]
    page = await text_of(site, new)
    assert f'as a retry of <a href="/runs/{bad}"><code>{bad}</code></a>' in page
    assert "is tried again" in page
    assert "data-follow" in page
    question = await text_of(site, f"{new}/cancel?back={new}")
    assert "It has not started and will not start" in question
    answer = await site.post(f"{new}/cancel", data={"back": new})
    assert (answer.status_code, answer.headers["location"]) == (303, new)
    assert "Recorded as cancelled" in await text_of(site, new)
    again = await site.post(f"{bad}/retry", data={"nope": "1"})
    assert again.status_code in (404, 422)
    assert ">Keep it</a>" in question
    for ended, status in ((bad, "failed"), (new.removeprefix("/runs/"), "cancelled")):
        question = await text_of(site, f"/runs/{ended}/cancel")
        assert f"Run {ended} has ended already" in question
        assert re.search(f"it ended as <[^>]+>{status}<", question)
        assert "will not start" not in question
        form = question[question.index("data-dialog-content") :]
        assert "<button" not in form[: form.index("</form>")]


async def test_who_can_only_read_sees_the_buttons_and_why_they_do_nothing(app, site, ran):
    key = (await site.post("/v1/keys", json={"name": "r", "scope": "read"})).json()["key"]
    async with client_of(app, key) as reader:
        page = await text_of(reader, f"/runs/{ran[1]}")
        assert 'disabled title="Your key can only read"' in page
        assert (await reader.post(f"/runs/{ran[1]}/retry", data={})).status_code == 403


async def test_a_run_that_is_tried_again_or_waits_says_so(site, node, fake_clock):
    await site.post("/v1/jobs", json={**JOB, "schedule": {"every": "1m"}})
    await fake_clock.advance(60)
    (run,) = await node.work(Outcome(kind="timeout", retryable=True, error="timed out after 3s"))
    page = await text_of(site, f"/runs/{run}")
    for expected in ("The last attempt failed: Timed out after 3s. It is tried again", "Next attempt", "Timed out"):
        assert expected in page, expected


async def test_a_node_that_is_gone_is_told_by_its_name_or_by_the_beginning_of_its_id(site, app, ran):
    service = app.context.service
    await site.get("/runs")
    await service.store.leave("tiny-1")
    assert "<div>tiny</div>" in await text_of(site, "/runs")
    assert node_name("0123456789abcdef", {}) == "01234567… (stopped since)"
    assert node_name("a", {}) == "a"
    assert node_name(None, {}) is None


async def test_a_takeover_is_told_in_order_with_the_late_result_that_was_refused(site, app, node, fake_clock):
    store = app.context.service.store
    await site.post("/v1/jobs", json={**JOB, "schedule": {"in": "2s"}})
    await fake_clock.advance(1)
    (run,) = await node.claim()
    assert "Claimed ahead of time" in await text_of(site, f"/runs/{run.id}")
    await fake_clock.advance(6)
    assert await store.declare_lost(node.info.id, 0)
    assert await store.reclaim() == 1
    other = TinyNode(store, "other")
    await other.register()
    (again,) = await other.claim()
    await fake_clock.advance(1)
    await node.end([run], Outcome(kind="error", error=f"late {EVIL}"))
    await fake_clock.advance(1)
    await other.end([again], OK)
    page = await text_of(site, f"/runs/{run.id}")
    told = re.findall(r"<b>([^<]+)</b>(?: <span class=.sub.>on (\w+)</span>)?", page[page.index('class="story') :])
    assert told == [
        ("Claimed", "tiny"),
        ("Scheduled", ""),
        ("Node lost", ""),
        ("Taken over", "other"),
        ("Late result refused", "tiny"),
        ("Attempt 2 sent", "other"),
        ("Answered", ""),
        ("Recorded as done", ""),
    ]
    assert "1 s ahead of its time" in page
    assert "from tiny, which was lost" in page
    assert "which another node had taken over: failed (late &lt;script&gt;" in (await site.get(f"/runs/{run.id}")).text
    assert "Nothing changed by it" in page


async def test_a_run_that_waits_for_its_destination_says_when_that_is_called_next(site, app, node, fake_clock):
    store, requires = app.context.service.store, "webhook@http://receiver.example"
    assert (await site.post("/v1/jobs", json={**JOB, "schedule": {"in": "1s"}})).status_code == 201
    await fake_clock.advance(2)
    (run,) = (await store.claim(node.info.id, offers=["webhook"], level=9, limit=9, lookahead_ms=2000)).runs
    away = TurnedAway(run_id=run.id, token=run.token, version=run.version, requires=requires)
    await store.wait_for_destinations(node.info.id, [away])
    now = await store.now()
    states: list[tuple[dict[str, Any], str]] = [
        ({"breaker": "open", "next_probe": now + 4000}, f'the next one <time datetime="{format_instant(now + 4000)}"'),
        ({"breaker": "half_open"}, "one is on its way"),
    ]
    for told, words in states:
        load = DestinationLoad(requires=requires, failures=12, since=now - 6000, **told)
        await store.beat(node.info.id, NodeLoad(destinations=[load]))
        page = await text_of(site, f"/runs/{run.id}")
        assert "Its last 12 calls failed. One run is sent every 10 s" in page
        assert words in page
    await store.beat(node.info.id, NodeLoad(destinations=[]))
    assert "One run is sent every 10 s" not in await text_of(site, f"/runs/{run.id}"), "it only has no room"


async def test_the_page_says_who_started_it(app, site, node):
    made = (await site.post("/v1/jobs", json=JOB)).json()
    run = (await site.post(f"/v1/jobs/{made['id']}/run")).json()
    assert (run["trigger"], "by hand</span>" in (await site.get(f"/runs/{run['id']}")).text) == (
        {"kind": "manual", "actor": "open"},
        True,
    ), "a server without keys does not know who it was"
    key = (await app.context.service.create_key(ApiKeySpec(name=EVIL, scope="write"))).key
    async with client_of(app, key) as anna:
        run = (await anna.post(f"/v1/jobs/{made['id']}/run")).json()
        assert run["trigger"] == {"kind": "manual", "actor": EVIL}
        await node.work(BAD)
        assert (await anna.get(f"/v1/runs/{run['id']}")).json()["trigger"] == run["trigger"]
        page = (await anna.get(f"/runs/{run['id']}")).text
        assert page.count("by hand, &lt;script&gt;") == 2, "beside its state, and in its story"
        again = (await anna.post(f"/v1/runs/{run['id']}/retry")).json()
        assert again["trigger"] == {"kind": "retry", "run_id": run["id"], "actor": EVIL}
        assert "</a>, &lt;script&gt;" in (await anna.get(f"/runs/{again['id']}")).text
