"""The overview: one sentence that is true, numbers that are links, and parts that fail alone."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from onthedot.api.app import App
from onthedot.clock import FakeClock
from onthedot.errors import StoreUnavailable
from onthedot.model.dead import DeadGroup, DeadGroups
from onthedot.model.node import NodeView
from onthedot.model.run import RunView
from onthedot.store import BacklogCount
from onthedot.store.cluster import proofs
from onthedot.web.charts import busiest_of, result_chart
from onthedot.web.concerns import BoundedCount, concerns_of
from onthedot.web.pages.overview import dead_letters_of, failures_of
from tests.api.conftest import JOB, client_of, serving
from tests.api.executor import FAILED, OK, TinyNode
from tests.store.hands import Hands

MINUTELY = {**JOB, "schedule": {"every": "1m"}, "policy": {"retry": {"attempts": 1}}}


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async with serving(sqlite_url, fake_clock) as app:
        yield app


@pytest.fixture
async def site(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


async def shown(site: httpx.AsyncClient, part: str = "") -> str:
    """The words of the page, or of one of its parts."""
    text = (await site.get("/")).text
    if part:
        begin = text.index(f'aria-label="{part}"')
        text = text[begin : text.index("</section>", begin)]
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


async def live(app: App, clock: FakeClock, *outcomes: Any) -> TinyNode:
    """A node ends one slot a minute like this."""
    node = TinyNode(app.context.service.store)
    await node.register()
    for outcome in outcomes:
        await clock.advance(60)
        await node.work(outcome)
    return node


async def test_a_fresh_installation_leads_to_the_first_job(site):
    text = (await site.get("/")).text
    assert "Nothing is scheduled yet." in text
    assert 'href="/jobs/new">Create the first job</a>' in text


async def test_all_is_well_and_then_it_is_not(site, app, fake_clock):
    await site.post("/v1/jobs", json=MINUTELY)
    await live(app, fake_clock, OK)
    assert "Everything is firing on time." in await shown(site)
    assert "No run has failed." in await shown(site, "Last failures")
    await fake_clock.advance(60)
    node = TinyNode(app.context.service.store, "second")
    await node.register()
    await node.work(FAILED)
    text = (await site.get("/")).text
    assert '<a href="/jobs?failing=true">1 job is failing</a>' in re.sub("1 Job", "1 job", text)
    assert "410 Gone" in await shown(site, "Last failures")
    assert "1 by cause" in await shown(site, "Dead letters")
    assert "HTTP 410 from http://127.0.0.1:5003 1 ×" in await shown(site, "Dead letters")


async def test_the_charts_are_drawn_from_what_was_counted(site, app, fake_clock):
    await site.post("/v1/jobs", json=MINUTELY)
    await live(app, fake_clock, OK, FAILED, OK)
    assert "Nothing fired" in await shown(site, "Last hour"), "nobody has counted yet"
    await fake_clock.advance(120)
    while await app.context.service.store.roll_up():
        pass
    words = await shown(site, "Last hour")
    assert "3 fired , 1 failed" in words
    assert "Firings per minute" in words
    assert "Lateness p99 p50" in words
    text = (await site.get("/")).text
    assert 'class="bar bad"' in text
    assert re.search(r'aria-label="Coming hour".*?(59|60) starts', re.sub(r"\s+", " ", text))


@pytest.mark.parametrize("planted", ["missing", "twice"])
async def test_the_proof_turns_red(site, app, fake_clock, planted):
    store = app.context.service.store
    await site.post("/v1/jobs", json={**MINUTELY, "key": "audited"})
    assert "has not ended yet" in await shown(site, "Proof")
    node = await live(app, fake_clock, OK, OK, OK)
    hands = Hands(store)
    slot = (await hands.ledger(1))[1]["slot"]
    if planted == "missing":
        await hands.sql(f"DELETE FROM history WHERE slot = {slot}")
    else:
        await hands.sql(
            "INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, finished_at)"
            f" VALUES ('1-{slot}-x', 1, 1, {slot}, 'scheduled', {slot}, 'done', {slot})"
        )
    await fake_clock.advance(proofs.ROUND_EVERY / 1000)
    await node.work(OK)
    while not await store.prove():
        pass
    text = (await site.get("/")).text
    assert 'id="proof" class="card panel bad"' in text
    words = await shown(site, "Proof")
    assert ("1 missing 0 decided twice" if planted == "missing" else "0 missing 1 decided twice") in words
    assert "audited" in words
    said = "1 slot is missing" if planted == "missing" else "1 slot was decided twice"
    assert f'<a href="/#proof">{said}</a>' in text
    label = "missing" if planted == "missing" else "decided twice"
    assert f'<a class="total bad" href="/#offences"><b>1</b><span>{label}</span></a>' in text
    offences = text[text.index('id="offences"') :]
    assert re.search(r'href="/jobs/1\?at=[^"]+#why"', offences[: offences.index("</ul>")])


async def test_a_slow_part_says_so_and_the_rest_stands(site, app, fake_clock, monkeypatch):
    await site.post("/v1/jobs", json=MINUTELY)
    await live(app, fake_clock, OK)
    service, never = app.context.service, asyncio.Event()

    async def slow(*_: Any) -> None:
        await never.wait()

    monkeypatch.setattr(service, "proof", slow)
    monkeypatch.setattr(service, "forecast", slow)
    asking = asyncio.ensure_future(site.get("/"))
    while not asking.done():
        await asyncio.sleep(0)
        await fake_clock.advance(0.05)
    text = (await asking).text
    assert (
        '<h2>Proof</h2></div><p class="part-error" role="status">This part could not be loaded: it took longer' in text
    )
    assert "The forecast is being computed" in text
    assert "What could be checked is firing on time" in text


async def test_a_forecast_that_failed_says_why_and_not_that_it_is_being_computed(site, app, monkeypatch):
    async def broken(*_: Any) -> None:
        raise StoreUnavailable("the disk is gone")

    await site.post("/v1/jobs", json=MINUTELY)
    monkeypatch.setattr(app.context.service, "forecast", broken)
    for path in ("/", "/upcoming"):
        text = (await site.get(path)).text
        assert "The forecast could not be computed: the disk is gone" in text, path
        assert "is being computed" not in text, path


def test_dead_letters_are_counted_up_to_ten_thousand_whatever_is_shown_of_them():
    def group(cause: str, count: int) -> DeadGroup:
        return DeadGroup(cause=cause, count=count, jobs=1, first_at="a", last_at="z")

    found = dead_letters_of(DeadGroups(items=[group("rare", 3), group("often", 1590)], exact=True), [])
    assert found.total.figure == "1,593"
    assert [(each.reason, each.count) for each in found.causes] == [("often", 1590), ("rare", 3)]
    most = dead_letters_of(DeadGroups(items=[group("often", 10_001)], exact=False), [])
    assert most.total.figure == "10,000+"


def test_concerns_are_in_words_and_the_worst_is_first():
    lost = NodeView(
        id="a", name="a", host="a", pid=1, version="1", roles=["executor"], offers=[], started_at="", beat_at="",
        state="lost", leader=False, held=0, running=0, capacity=1, lateness_ms=None,
    )  # fmt: skip
    away = {"container@a": 1, "container@b": 2}
    backlog = BacklogCount(due=12, running=0, oldest_ms=90_000, unoffered={}, unreached=away)
    found = concerns_of(
        nodes=[lost], failing=BoundedCount(100, more=True), late=BoundedCount(2), backlog=backlog, destinations=[]
    )
    assert [(each.tone, each.words) for each in found] == [
        ("bad", "no node is running jobs"),
        ("bad", "1 node was lost"),
        ("bad", "more than 100 jobs are failing"),
        ("bad", "3 runs go on where no node reaches them"),
        ("warn", "2 jobs are late"),
        ("warn", "12 due runs wait (up to 1.5 min)"),
    ]
    assert concerns_of() == []


def test_one_failure_among_thousands_is_seen():
    chart = result_chart([("a", 10_000, 1), ("b", 0, 0)])
    assert [(bar.tone, bar.height) for bar in chart.bars] == [("", 120), ("bad", 2), ("", 0)]
    assert chart.rows == [("a", "10,000", "1"), ("b", "0", "0")]


def test_the_last_failures_come_by_when_they_failed_and_each_reason_of_a_job_once():
    def failed(job: int, due: int, ended: int, error: str = "500") -> RunView:
        at = "2026-11-18T12:{:02}:00.000Z".format
        fields: dict[str, Any] = dict.fromkeys(RunView.__struct_fields__)
        known = {"id": f"{job}-{due}", "job_id": job, "error": error}
        return RunView(**(fields | known | {"scheduled_for": at(due), "finished_at": at(ended)}))

    by_due_time = [failed(1, 9, 10), failed(1, 8, 9), failed(2, 5, 30), failed(1, 4, 20, "timeout")]
    found = failures_of(by_due_time)
    assert [(each.last.id, each.reason, each.count) for each in found] == [
        ("2-5", "500", 1),
        ("1-4", "timeout", 1),
        ("1-9", "500", 2),
    ]


async def test_the_wall_display_is_the_same_page_without_navigation(site):
    await site.post("/v1/jobs", json=JOB)
    wall, desk = (await site.get("/?wall=true")).text, (await site.get("/")).text
    assert 'href="/?wall=true"' in desk
    assert (" data-wall" in wall, " data-wall" in desk) == (True, False)
    assert ('aria-label="Main"' in wall, 'aria-label="Main"' in desk) == (False, True)
    part = (await site.get("/?wall=true", headers={"x-onthedot-live": "1"})).text
    assert "Coming hour" in part
    assert "<html" not in part
    assert (await site.get("/?wall=maybe")).status_code == 422


@pytest.mark.parametrize(
    ("counts", "marked"),
    [([3, 1, 3], 0), ([1, 2, 5, 5], 2), ([2, 2, 2], None), ([0, 0], None), ([], None), ([4], None)],
)
def test_only_the_first_of_the_busiest_is_marked(counts, marked):
    assert busiest_of(counts) == marked
