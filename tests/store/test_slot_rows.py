"""What became of the slots of a job, one by one and by days, on both stores."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from onthedot.clock import FakeClock
from onthedot.errors import Invalid, NotFound
from onthedot.model.change_plan import PlanRequest
from onthedot.model.instant import parse_rfc3339
from onthedot.model.schedule import Schedule
from onthedot.model.slots import ExplainedSlots
from onthedot.service import Service
from onthedot.settings import Settings
from onthedot.store import Store
from tests.service.conftest import Agreeable
from tests.store.conftest import Times
from tests.store.given import execute
from tests.store.hands import REFUSED, Hands, spec


def at(text: str) -> int:
    """A time of the 15th, the day after the start (22:13:20)."""
    ms = parse_rfc3339(f"2023-11-15T{text}:00Z" if len(text) == 5 else text)
    assert ms is not None
    return ms


SINCE, UNTIL = at("2023-11-14T22:00:00Z"), at("06:30")


@pytest.fixture
async def service(store: Store, fake_clock: FakeClock) -> AsyncIterator[Service]:
    made = Service(store, Agreeable(), fake_clock, Settings())
    yield made
    await made.close()


@pytest.fixture
async def job(store: Store, times: Times) -> int:
    """At 04:10: done, failed, three slots paused, executing; and a run by hand at 00:05."""
    hands = Hands(store)
    job = await hands.job(Schedule(cron="0 * * * *", count=10))
    await times.set(at("2023-11-14T23:00:00Z"))
    await hands.finish(await hands.one())
    await times.set(at("00:00"))
    await hands.finish(await hands.one(), outcome=REFUSED)
    await times.set(at("00:05"))
    await store.run_job(1, job)
    await hands.finish(await hands.one())
    await store.pause_job(1, job, note="moving")
    await times.set(at("03:30"))
    await store.resume_job(1, job)
    await times.set(at("04:00"))
    await hands.one()
    await times.set(at("04:10"))
    return job


def short(found: ExplainedSlots) -> list[tuple[str, str, str | None]]:
    return [(each.slot[11:16], each.status, each.outcome or each.reason) for each in found.items]


async def test_each_slot_of_a_range(service: Service, store: Store, times: Times, job: int):
    found = await service.explain_slots(1, job, SINCE, UNTIL)
    assert short(found) == [
        ("06:00", "planned", None),
        ("05:00", "planned", None),
        ("04:00", "fired", "EXECUTING"),
        ("03:00", "skipped", "paused"),
        ("02:00", "skipped", "paused"),
        ("01:00", "skipped", "paused"),
        ("00:00", "fired", "FAILED"),
        ("23:00", "fired", "DONE"),
    ]
    assert found.items[0].because == "it will fire"
    assert found.items[3].because == "skipped: the job was paused"
    assert found.items[-1].run_id == f"{job}-{at('2023-11-14T23:00:00Z')}"
    assert found.next is None

    pages, until = [], UNTIL
    for _ in range(3):
        page = await service.explain_slots(1, job, SINCE, until, limit=3)
        pages.append([slot for slot, _, _ in short(page)])
        until = at(page.next) if page.next else 0
    assert pages == [["06:00", "05:00", "04:00"], ["03:00", "02:00", "01:00"], ["00:00", "23:00"]]
    assert until == 0
    inside = await service.explain_slots(1, job, at("02:30"), at("03:30"))
    assert short(inside) == [("03:00", "skipped", "paused")], "the range began before"

    await execute(store, f"DELETE FROM history WHERE id = '{job}-{at('00:00')}'")
    (gone,) = (await service.explain_slots(1, job, at("00:00"), at("00:30"))).items
    assert (gone.status, gone.because) == ("missing", "no record of this slot")
    with pytest.raises(NotFound):
        await service.explain_slots(2, job, SINCE, UNTIL)
    with pytest.raises(Invalid, match="until"):
        await service.explain_slots(1, job, UNTIL, SINCE)


async def test_what_is_to_come_ends_with_its_count_and_with_a_pause(service: Service, store: Store, job: int):
    late = await service.explain_slots(1, job, at("04:30"), at("23:30"))
    assert [slot for slot, _, _ in short(late)] == ["08:00", "07:00", "06:00", "05:00"], "6 of 10 are used"
    await store.pause_job(1, job, note="again", until=at("06:30"))
    late = await service.explain_slots(1, job, at("04:30"), at("23:30"))
    assert short(late)[1:3] == [("07:00", "planned", None), ("06:00", "skipped", "paused")]
    assert late.items[2].because == "skipped: the job is paused: again"


async def test_a_range_of_a_former_schedule_is_told_once(service: Service, store: Store, job: int):
    await store.update_job(1, job, lambda _: spec(Schedule(cron="30 * * * *")))
    found = await service.explain_slots(1, job, SINCE, at("05:45"))
    assert short(found) == [
        ("05:30", "planned", None),
        ("04:30", "planned", None),
        ("04:00", "fired", "EXECUTING"),
        ("01:00", "skipped", "paused"),
        ("00:00", "fired", "FAILED"),
        ("23:00", "fired", "DONE"),
    ]
    assert (found.items[3].until, found.items[3].count) == ("2023-11-15T03:00:00.000Z", 3)
    calendar = await service.job_calendar(1, job, SINCE, UNTIL)
    assert [day.skipped for day in calendar.items] == [0, 3]


async def test_a_calendar(service: Service, job: int, monkeypatch: pytest.MonkeyPatch):
    calendar = await service.job_calendar(1, job, SINCE, at("2023-11-16T01:00:00Z"))
    numbers = [(d.date[8:], d.done, d.failed, d.skipped, d.cancelled, d.running, d.planned) for d in calendar.items]
    assert numbers == [("14", 1, 0, 0, 0, 0, 0), ("15", 1, 1, 3, 0, 1, 4), ("16", 0, 0, 0, 0, 0, 0)]
    assert (calendar.tz, calendar.complete, calendar.counted_since) == ("UTC", True, None)
    there = (await service.job_calendar(1, job, at("01:00"), at("01:00"), "Asia/Kathmandu")).items
    assert [(day.date, day.since, day.done) for day in there] == [("2023-11-15", "2023-11-14T18:15:00.000Z", 2)]
    split = (await service.job_calendar(1, job, at("02:00"), at("02:00"), "America/Noronha")).items
    assert [(day.date, day.skipped) for day in split] == [("2023-11-15", 2)], "at 02:00 in UTC a day begins there"
    assert len((await service.job_calendar(1, job)).items) == 91
    for since, until, tz in ((SINCE, SINCE + 401 * 86_400_000, None), (SINCE, UNTIL, "Mars/Olympus")):
        with pytest.raises(Invalid):
            await service.job_calendar(1, job, since, until, tz)

    monkeypatch.setattr("onthedot.store.runs.slot_rows._COUNTED", 2)
    some = await service.job_calendar(1, job, SINCE, UNTIL)
    assert (some.complete, some.counted_since) == (False, "2023-11-15T00:05:00.000Z")


async def test_what_a_change_would_do(service: Service, store: Store, job: int):
    later = PlanRequest(id=job, patch={"schedule": {"cron": "30 * * * *", "count": None}}, days=1)
    (planned,) = (await service.plan_changes(1, later)).jobs
    assert (planned.before, planned.after) == (4, 24), "of 10 slots 6 are used; the new schedule has no count"
    assert (planned.moved, planned.added, planned.removed) == (4, 20, 0)
    assert planned.first_moved[0].before[11:16] == "05:00"
    assert planned.first_moved[0].after[11:16] == "04:30"
    assert (await store.get_job(1, job)).version == 3, "paused and resumed, and nothing since"
    paused = PlanRequest(id=job, patch={"paused": True}, days=1)
    (planned,) = (await service.plan_changes(1, paused)).jobs
    assert (planned.change, planned.after, planned.removed) == ("changed", 0, 4)
