"""The page of a job and its actions, over HTTP: without scripts."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import httpx
import pytest

from onthedot.api.app import App
from onthedot.api.auth import COOKIE
from onthedot.clock import FakeClock
from onthedot.errors import StoreUnavailable
from onthedot.model.decoding import convert
from onthedot.model.job import JobView
from onthedot.model.key import ApiKeySpec
from onthedot.model.run import RunView
from onthedot.web.day_slots import DaySlot, with_reasons
from onthedot.web.definition import definition
from onthedot.web.paced import Paced
from onthedot.web.parts import load_slow
from tests.api.conftest import client_of, serving
from tests.api.executor import FAILED, OK, TinyNode

JOB: dict[str, Any] = {
    "key": "nightly",
    "name": "Nightly report",
    "schedule": {"cron": "0 3 * * *", "tz": "Europe/Berlin"},
    "target": {"type": "webhook", "url": "http://127.0.0.1:9/x", "headers": {"Authorization": "Bearer secret-1"}},
    "tags": ["reports"],
    "params": {"day": 1},
}
OURS = {"origin": "http://localhost:8000"}
LIVE = {"x-onthedot-live": "1"}


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async with serving(sqlite_url, fake_clock) as app:
        yield app


@pytest.fixture
async def site(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        client.headers.update(OURS)
        yield client


async def made(site: httpx.AsyncClient, **more: Any) -> str:
    """The path of a new job's page."""
    answer = await site.post("/v1/jobs", json={**JOB, **more})
    assert answer.status_code == 201, answer.text
    return f"/jobs/{answer.json()['id']}"


def said(page: httpx.Response) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page.text)))


async def test_a_job_is_told_in_sentences_with_its_next_firings_and_neighbours(site):
    await site.post("/v1/jobs", json={**JOB, "key": "after"})
    path = await made(site, on_success=["after"], requires=["gpu"])
    page = await site.get(path)
    told = said(page)
    for expected in (
        "Nightly report",
        "Active · nightly",
        "At 03:00. 0 3 * * * · Europe/Berlin",
        "POST http:// 127.0.0.1: 9/ x",
        "A run that fails is tried up to 2 more times, first after 1 s",
        "Runs only on nodes that have gpu.",
        "Then runs after when it succeeds",
        "Its runs wait: no live node has the label gpu.",
        "No runs yet",
    ):
        assert expected in told, expected
    assert told.count(" 03:00:00") == 10
    assert "secret-1" not in page.text
    after = await site.get("/jobs/1")
    assert "Follows nightly when it succeeds" in said(after)


async def test_runs_are_shown_with_their_reasons_filtered_and_by_pages(site, app, fake_clock):
    node = TinyNode(app.context.service.store)
    await node.register()
    path = await made(site, schedule={"every": "1m"}, policy={"retry": {"attempts": 1}})
    for place in range(27):
        await fake_clock.advance(60)
        await node.work(FAILED if place == 0 else OK)
    page = await site.get(path)
    assert page.text.count('<tr id="run-') == 25
    assert "The last 20 runs: 20 done" in page.text
    assert "27 runs" in said(page)
    (older,) = re.findall(r'href="([^"]+)" rel="next"', page.text)
    assert (await site.get(html.unescape(older))).text.count('<tr id="run-') == 2
    failed = await site.get(f"{path}?status=FAILED")
    assert failed.text.count('<tr id="run-') == 1
    assert "410 Gone" in failed.text
    assert "No runs found" in (await site.get(f"{path}?status=CANCELLED")).text
    live = await site.get(path, headers={"x-onthedot-live": "1"})
    assert "<html" not in live.text
    assert "Next firings" in live.text


async def test_runs_are_filtered_by_time_trigger_lateness_and_error_and_pages_keep_the_filters(site, app, fake_clock):
    node = TinyNode(app.context.service.store)
    await node.register()
    path = await made(site, schedule={"every": "1m", "tz": "Europe/Berlin"}, policy={"retry": {"attempts": 1}})
    for place in range(30):
        await fake_clock.advance(60)
        await node.work(FAILED if place == 0 else OK)
    await site.post(f"{path}/run", data={})
    await node.work(OK)

    def shown(page: httpx.Response) -> list[str]:
        assert page.status_code == 200, page.text
        return re.findall(r'<tr id="run-([^"]+)"', page.text)

    async def listed(**query: str) -> list[str]:
        return shown(await site.get(path, params=query))

    async def by_api(**query: str) -> list[str]:
        return [run["id"] for run in (await site.get(f"/v1{path}/runs", params=query)).json()["items"]]

    assert await listed(trigger="manual") == await by_api(trigger="manual") != []
    assert await listed(q="410 gone") == await by_api(q="410 gone") != []
    assert await listed(late="true") == []
    first = (await by_api(q="410 gone"))[0]
    at = (await site.get(f"/v1/runs/{first}")).json()["scheduled_for"]
    local = datetime.fromisoformat(at).astimezone(ZoneInfo("Europe/Berlin"))
    assert await listed(until=f"{local:%Y-%m-%dT%H:%M:%S}") == await listed(until=at) == [first]
    later = f"{local + timedelta(minutes=2):%Y-%m-%d %H:%M}"
    page = await site.get(path, params={"since": later, "trigger": "schedule", "day": "2023-11-14"})
    assert len(shown(page)) == 25
    assert f'value="{local + timedelta(minutes=2):%Y-%m-%dT%H:%M}:00"' in page.text
    assert '<input type="hidden" name="day" value="2023-11-14">' in page.text
    assert '<input type="hidden" name="trigger" value="schedule">' in page.text, "the form of the question why keeps it"
    (older,) = re.findall(r'href="([^"]+)#runs" rel="next"', page.text)
    rest = shown(await site.get(html.unescape(older)))
    assert [*shown(page), *rest] == await by_api(since=_utc(local + timedelta(minutes=2)), trigger="schedule")
    assert first not in rest
    none = said(await site.get(path, params={"trigger": "chain", "since": at}))
    assert "No runs found No run of this job matches these filters." in none


def _utc(local: datetime) -> str:
    return f"{local.replace(second=0).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


async def test_wrong_filters_of_runs_are_named_with_what_is_accepted(site):
    path = await made(site)
    for name, value, accepted in (
        ("since", "soon", "accepted: a date and time in Europe/Berlin such as 2026-03-28 03:00, or with an offset"),
        ("until", "2026-13-01T00:00", "accepted: a date and time in Europe/Berlin"),
        ("trigger", "magic", "accepted: one of schedule, manual, backfill, retry, chain"),
        ("late", "maybe", "accepted: true or false"),
        ("node_id", "x", "unknown parameter"),
    ):
        answer = await site.get(path, params={name: value})
        assert answer.status_code == 422, name
        assert name in said(answer)
        assert accepted in said(answer), said(answer)


async def test_why_is_answered_for_a_wall_clock_of_the_job_and_a_missing_firing_can_be_run(site, app, fake_clock):
    path = await made(site)
    await site.post(f"{path}/pause", data={})
    await fake_clock.advance(86_400)
    await site.post(f"{path}/resume", data={})
    skipped = await site.get(path, params={"at": "2023-11-15T03:00"})
    assert "2023-11-15 03:00:00 Skipped: the job was paused." in said(skipped)
    assert "Run it for this instant" in skipped.text
    filled = await site.post(
        f"{path}/backfill", data={"start": "2023-11-15T02:00:00Z", "end": "2023-11-15T02:00:00Z", "act": "one"}
    )
    assert filled.status_code == 303
    assert "which gives way to firings that are due" in (await site.get(path)).text
    none = await site.get(path, params={"at": "2023-11-15T03:30"})
    assert "does not fire at this instant" in none.text
    assert "Run it for this instant" not in none.text
    wrong = await site.get(path, params={"at": "soon"})
    assert wrong.status_code == 200
    assert "not a valid time" in wrong.text


async def test_run_now_also_with_other_params(site):
    path = await made(site)
    await site.post(f"{path}/run", data={})
    form = await site.get(f"{path}/run")
    assert '"day": 1' in html.unescape(form.text)
    wrong = await site.post(f"{path}/run", data={"params": "[1]"})
    assert wrong.status_code == 422
    assert "Not an object; accepted: a JSON object" in said(wrong)
    assert re.search(r"<textarea[^>]*>\n\[1\]</textarea>", wrong.text)
    good = await site.post(f"{path}/run", data={"params": '{"day": 2}', "back": f"{path}?status=PENDING"})
    assert good.headers["location"] == f"{path}?status=PENDING"
    runs = (await site.get(f"/v1{path}/runs")).json()["items"]
    assert [run["params"] for run in runs] == [{"day": 2}, None]


async def test_pause_has_a_reason_an_author_and_an_end(site):
    path = await made(site)
    wrong = await site.post(f"{path}/pause", data={"ends": "at", "note": "kept"})
    assert wrong.status_code == 422
    assert 'value="kept"' in wrong.text
    await site.post(f"{path}/pause", data={"ends": "at", "until": "2023-11-16T12:00", "note": "upgrade of <b>"})
    pause = (await site.get(f"/v1{path}")).json()["pause"]
    assert (pause["note"], pause["until"]) == ("upgrade of <b>", "2023-11-16T11:00:00.000Z")
    page = await site.get(path)
    assert "by someone without a key: upgrade of <b> . It resumes by itself in 1 d 12 h ." in said(page)
    assert "Next firings if it were resumed now" in page.text
    await site.post(f"{path}/resume", data={})
    assert (await site.get(f"/v1{path}")).json()["state"] == "active"


async def test_one_firing_is_skipped_and_fires_after_all(site):
    path = await made(site)
    slot = {"slot": "2023-11-16T02:00:00.000Z"}
    assert "Skip" in (await site.get(path)).text
    assert (await site.post(f"{path}/skip", data=slot)).status_code == 303
    page = await site.get(path)
    assert "Skipped the firing at 2023-11-16 02:00:00 UTC" in page.text
    assert "Thu 2023-11-16 03:00:00 skipped by someone without a key 11-16 02:00:00" in said(page)
    assert "skipped left out by someone without a key by its schedule" in said(page)
    assert "Fire after all" in page.text
    assert said(page).count(" 03:00:00") == 11
    assert (await site.post(f"{path}/unskip", data=slot)).status_code == 303
    assert "Fire after all" not in (await site.get(path)).text
    assert (await site.post(f"{path}/skip", data={"slot": "soon"})).status_code == 422


async def test_backfill_counts_first_and_is_an_operation_over_its_firings(site, app):
    path = await made(site, schedule={"every": "1h", "start": "2023-11-01T00:00:00Z"})
    shown = await site.get(f"{path}/backfill", params={"start": "2023-11-10T00:00:00Z", "end": "2023-11-10T11:00"})
    assert 'value="2023-11-10T00:00:00"' in shown.text
    asked = {"start": "2023-11-10T00:00", "end": "2023-11-10T11:00", "act": "count"}
    counted = await site.post(f"{path}/backfill", data=asked)
    assert "12 firings to run, from 2023-11-10 00:00 to 2023-11-10 11:00, in UTC: Fri 2023-11-10 00:00:00" in said(
        counted
    )
    assert "Run 12 firings" in counted.text
    assert (await site.get(f"/v1{path}/runs?status=PENDING")).json()["items"][1:] == []
    wrong = await site.post(f"{path}/backfill", data={**asked, "act": "start", "rate": "0"})
    assert (wrong.status_code, "an integer from 1 to 10000" in wrong.text) == (422, True)
    started = await site.post(f"{path}/backfill", data={**asked, "act": "start", "rate": "5"})
    assert started.status_code == 303
    progress = await site.get(started.headers["location"])
    for expected in ("Backfill 12 firings", "0 of 12", "Firings of one job", "at most 5 per second", "Abort"):
        assert expected in said(progress), expected
    for _ in range(20):
        await app.context.service.store.work_off_operation("n1")
        await app.context.clock.advance(1)
    assert len((await site.get(f"/v1{path}/runs")).json()["items"]) == 12
    assert "It is finished" in said(await site.get(started.headers["location"]))
    again = await site.post(f"{path}/backfill", data=asked)
    assert "Nothing to run" in again.text
    backwards = await site.post(f"{path}/backfill", data={**asked, "end": "2023-11-09T00:00"})
    assert backwards.status_code == 422


async def test_more_than_a_hundred_firings_are_confirmed_by_their_number(site):
    path = await made(site, schedule={"every": "1m", "start": "2023-11-01T00:00:00Z"})
    asked = {"start": "2023-11-10T00:00", "end": "2023-11-10T23:59", "act": "start", "shown": "1440"}
    for typed in ("", "144"):
        refused = await site.post(f"{path}/backfill", data={**asked, "typed": typed})
        assert refused.status_code == 422
        assert "Type 1,440 to confirm" in refused.text
    assert (await site.post(f"{path}/backfill", data={**asked, "typed": "1,440"})).status_code == 303


async def test_the_calendar_shows_days_and_a_day_its_firings_with_the_reason(site, app, fake_clock):
    node = TinyNode(app.context.service.store)
    await node.register()
    path = await made(site, schedule={"cron": "0 3,15 * * *", "tz": "Europe/Berlin"}, policy={"retry": {"attempts": 1}})
    await fake_clock.advance(86_400)
    await node.work(FAILED)
    await site.post(f"{path}/pause", data={})
    await fake_clock.advance(86_400)
    await site.post(f"{path}/resume", data={})
    page = await site.get(path)
    cells = dict(re.findall(r'href="[^"]*day=([\d-]+)[^"]*" title="([^"]+)"', page.text))
    assert len(cells) == 84
    assert "1 failed" in cells["2023-11-15"]
    assert cells["2023-11-16"].startswith("Thu 16 Nov: ")
    assert "2 planned" in cells["2023-11-20"]
    assert "15:00:00 failed 410 Gone." in said(await site.get(path, params={"day": "2023-11-15"}))
    day = await site.get(path, params={"day": "2023-11-16"})
    assert "Thursday, 16 November 2023" in said(day)
    assert "03:00:00 skipped Skipped: the job was paused." in said(day)
    assert 'value="2023-11-16T02:00:00.000Z"' in day.text
    ahead = said(await site.get(path, params={"day": "2023-11-20"}))
    assert "15:00:00 pending" in ahead
    assert "No firings were due" in said(await site.get(path, params={"day": "2023-01-01"}))
    assert "not a valid date" in said(await site.get(path, params={"day": "soon"}))


def test_why_a_run_of_the_day_was_cancelled_is_told_in_one_line():
    row = DaySlot(
        at="2023-11-15T02:00:00.000Z", local="", because="", status="CANCELLED", run_id="1-1", fill=True, skip=False
    )
    fields: dict[str, Any] = dict.fromkeys(RunView.__struct_fields__)
    run = RunView(**(fields | {"id": "1-1", "error": "\ncancelled by ann\nwith more"}))
    assert [each.because for each in with_reasons([row], [run])] == ["cancelled by ann"]


async def test_the_calendar_and_the_chosen_day_are_live(site, app, fake_clock):
    node = TinyNode(app.context.service.store)
    await node.register()
    path = await made(site, schedule={"cron": "0 3 * * *"})
    await site.get(path)
    before = (await site.get(path, headers=LIVE)).text
    assert "day=2023-11-15" in before
    assert "Wed 15 Nov: 1 planned" in before
    await fake_clock.advance(86_400)
    await node.work(OK)
    assert "Wed 15 Nov: 1 done" in (await site.get(path, headers=LIVE)).text
    assert "03:00:00 done" in said(await site.get(f"{path}?day=2023-11-15", headers=LIVE))


async def test_the_calendar_is_counted_as_often_as_its_price_allows(fake_clock):
    paced, counted = Paced(), 0

    async def count():
        nonlocal counted
        counted += 1
        await fake_clock.sleep(1)
        return counted

    async def asked(**how):
        waits = asyncio.ensure_future(paced.get(fake_clock, "job", count, **how))
        await fake_clock.advance(1)
        return await waits

    assert await asked() == 1
    assert await asked() == 1
    assert await asked(fresh=True) == 2
    await fake_clock.advance(20)
    assert await asked() == 3


async def test_what_was_given_up_is_not_tried_again_at_once(fake_clock):
    paced = Paced()

    async def never():
        await fake_clock.sleep(1000)

    given_up = asyncio.ensure_future(paced.get(fake_clock, "job", never))
    await fake_clock.advance(1)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    with pytest.raises(TimeoutError):
        await paced.get(fake_clock, "job", never)


async def test_deleted_and_brought_back_by_the_button_of_the_message(site):
    path = await made(site)
    assert "You can undo this for ten minutes" in (await site.get(f"{path}/delete")).text
    stale = await site.post(f"{path}/delete", data={"version": "7"})
    assert stale.status_code == 412
    gone = await site.post(f"{path}/delete", data={"version": "1"})
    assert gone.headers["location"] == "/jobs"
    listed = await site.get("/jobs")
    assert "Deleted Nightly report." in listed.text
    undo = re.search(r'<div class="notice good".*?action="([^"]+)"', listed.text, re.DOTALL)
    assert undo is not None
    assert (await site.get(path)).status_code == 404
    back = await site.post(undo[1], data={})
    assert back.headers["location"] == path
    assert "Nightly report is back" in (await site.get(path)).text


async def test_the_page_of_a_job_that_was_just_deleted_brings_it_back(site, fake_clock):
    path = await made(site)
    await site.delete(f"/v1{path}")
    gone = await site.get(path)
    assert gone.status_code == 404
    assert "was deleted" in said(gone)
    assert "by someone without a key" in said(gone)
    (undo,) = re.findall(r'action="([^"]+/undelete)"', gone.text)
    assert (await site.post(undo, data={})).headers["location"] == path
    assert (await site.get(path)).status_code == 200
    await site.delete(f"/v1{path}")
    await fake_clock.advance(601)
    late = await site.get(path)
    assert late.status_code == 404
    assert "/undelete" not in late.text


async def test_versions_say_what_changed_and_one_is_restored(site):
    path = await made(site)
    await site.patch(f"/v1{path}", json={"name": "<i>Renamed</i>", "policy": {"timeout": "9s"}})
    page = await site.get(f"{path}/versions")
    assert "Edited by someone without a key" in said(page)
    assert "<ins>&lt;i&gt;Renamed&lt;/i&gt;</ins>" in page.text
    assert "<del>3s</del>" in page.text
    asked = await site.get(f"{path}/versions/1/restore?back={path}")
    assert "<ins>Nightly report</ins>" in asked.text
    conflict = await site.post(f"{path}/versions/1/restore", data={"seen": "1"})
    assert conflict.status_code == 412
    done = await site.post(f"{path}/versions/1/restore", data={"seen": "2"})
    assert done.headers["location"] == f"{path}/versions"
    job = (await site.get(f"/v1{path}")).json()
    assert (job["name"], job["version"]) == ("Nightly report", 3)
    assert (await site.get(f"{path}/versions/9/restore")).status_code == 404


async def test_a_version_shows_tags_one_by_one_and_marks_what_came_and_went(site):
    path = await made(site)
    for tags in (["billing", "nightly"], ["nightly", "<b>night & day"]):
        assert (await site.patch(f"/v1{path}", json={"tags": tags})).status_code == 200
    changed = (await site.get(f"{path}/versions")).text
    newest = changed[changed.index('id="version-3"') : changed.index('id="version-2"')]
    assert '<del class="tag">billing</del>' in newest
    assert '<ins class="tag">&lt;b&gt;night &amp; day</ins>' in newest
    assert newest.count('<span class="tag">nightly</span>') == 2
    assert "[&#34;" not in changed


async def test_who_can_only_read_sees_why_buttons_do_nothing_and_is_refused(app, site):
    path = await made(site)
    reader = await app.context.service.create_key(ApiKeySpec(name="r", scope="read"))
    session, _ = await app.context.service.log_in(reader.key)
    site.cookies.set(COOKIE, session.token)
    page = await site.get(path)
    for label in ("Run now", "Pause…", "Delete…", "Backfill…"):
        assert re.search(rf'disabled title="Your key can only read"[^>]*>{label}<', page.text), label
    listed = await site.get("/jobs")
    for text, labels in ((page.text, ("Edit", "Duplicate")), (listed.text, ("New job",))):
        for label in labels:
            assert re.search(rf'disabled title="Your key can only read"[^>]*>{label}<', text), label
    for verb in ("run", "pause", "resume", "backfill", "skip", "delete", "undelete"):
        assert (await site.post(f"{path}/{verb}", data={})).status_code == 403


async def test_a_part_that_can_not_be_loaded_says_so_and_the_rest_stands(app, site, monkeypatch):
    path = await made(site)

    async def away(*_: Any) -> None:
        raise StoreUnavailable("the database is away")

    monkeypatch.setattr(app.context.service.store, "list_runs", away)
    page = await site.get(path)
    assert page.status_code == 200
    assert "This part could not be loaded: the database is away." in said(page)
    assert "Next firings" in page.text


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ({"retry": {"attempts": 1}}, "A run that fails is not tried again."),
        ({"retry": {"plan": "quick"}}, "A run that fails is tried again after 1 s, 5 s, 30 s and 2 min."),
        ({"retry": {"attempts": 2, "until": "next_slot"}}, "1 more time, first after 1 s; not after its next firing."),
        ({"catch_up": "all"}, "all run, at most the last 100."),
        ({"concurrency": {"group": "db", "limit": 1}}, "At most 1 run at the same time of all jobs of the group db."),
        ({"completion": "callback"}, "The receiver reports the result with a callback, within 1 h."),
        ({"expires_in": "5m", "jitter": "10s"}, "has not started 5 min after it was due is given up."),
        ({"delivery": "at_most_once"}, "it is not run again, because it may have happened."),
    ],
)
def test_policies_are_sentences(policy, sentence):
    job = viewed(policy=policy)
    assert any(sentence in fact.text for fact in definition(job)), [fact.text for fact in definition(job)]


def test_a_job_that_runs_elsewhere_is_neither_retried_nor_lost_with_a_node():
    said = {fact.label: fact.text for fact in definition(viewed(target={"type": "checkin", "grace": "30m"}))}
    assert said["Report"] == "A run without a report 30 min after it was due, or after it started, is a missed run."
    assert {"Retries", "Timeout", "Overlap", "Node loss"}.isdisjoint(said)


def viewed(**fields: Any) -> JobView:
    view = {**JOB, "policy": {}, "id": 1, "paused": False, "version": 1, "state": "active", "stats": {}, **fields}
    none = dict.fromkeys(("reason", "next_run", "last_run"))
    return convert({**view, **none, "created_at": "", "updated_at": ""}, JobView)


async def test_what_takes_long_goes_on_and_is_there_for_whoever_asks_next(fake_clock):
    paced, found, counted = Paced(), asyncio.Event(), 0

    async def count() -> int:
        nonlocal counted
        counted += 1
        await found.wait()
        return counted

    first = asyncio.ensure_future(load_slow(fake_clock, paced.going_on(fake_clock, "job", count, fresh=True), 0.1))
    await fake_clock.advance(0.2)
    assert (await first).pending
    second = asyncio.ensure_future(load_slow(fake_clock, paced.going_on(fake_clock, "job", count), 0.1))
    found.set()
    assert (await second).value == 1
    assert (await load_slow(fake_clock, paced.going_on(fake_clock, "job", count), 0.1)).value == 1
