"""The second opinion on slots agrees with the first, which it does not know, over years and changes of clocks."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest

from onthedot.audit import CannotTell, LedgerEntry, ScheduleFacts, judge, slots_between
from onthedot.model.duration import Duration
from onthedot.model.schedule import Schedule
from onthedot.timing import compile_schedule

DAY = 86_400_000
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia")
CRONS = (
    "0 3 * * *",
    "30 2 * * *",
    "15,45 1,2,3 * * *",
    "*/20 * * * *",
    "0 */2 * * *",
    "30 1-3 * * *",
    "0 30 2 * * *",
    "*/90 59 23 * * *",
    "0 0 L * *",
    "0 12 13 * FRI",
    "0 0 */2 * MON",
    "0 9 * * FRI-SUN",
    "5 4 * * MON#2",
    "0 0 LW * *",
    "0 22 ? * 5L",
    "H H(1-3) * * *",
    "H/10 * * * *",
    "@weekly",
    "7-7/3 0 * * *",
)
STARTS = ["2026-03-27", "2026-10-23", "2026-04-03", "2026-10-02", "2026-11-25", "2011-12-28", "2028-02-27"]


@pytest.mark.parametrize("tz", ZONES)
def test_the_same_slots_as_the_timetable(tz: str):
    for cron, start in itertools.product(CRONS, STARTS):
        since = round(datetime.fromisoformat(start).replace(tzinfo=UTC).timestamp() * 1000)
        times = compile_schedule(Schedule(cron=cron, tz=tz), anchor=0, seed="nightly")
        wanted, at = [], times.next_after(since - 1)
        while at is not None and at < since + 9 * DAY:
            wanted.append(at)
            at = times.next_after(at)
        found = slots_between(ScheduleFacts(cron=cron, tz=tz, seed="nightly"), since, since + 9 * DAY)
        assert found == wanted, (cron, tz, start)


@pytest.mark.parametrize(
    "schedule",
    [
        {"every": Duration(90_000)},
        {"every": Duration(7_000), "start": "2026-03-28T23:59:58", "tz": "Europe/Berlin"},
        {"cron": "*/7 * * * *", "start": "2026-03-28", "end": "2026-03-28", "tz": "America/New_York"},
        {"at": "2026-03-29T02:30:00", "tz": "Europe/Berlin"},
        {"at": "2026-03-28T12:00:00.250+02:00"},
        {"in_": Duration(3_600_000)},
    ],
)
def test_the_other_kinds_with_start_and_end(schedule):
    since = round(datetime(2026, 3, 28, tzinfo=UTC).timestamp() * 1000)
    times = compile_schedule(Schedule(**schedule), anchor=since + 5)
    wanted, at = [], times.next_after(since - 1)
    while at is not None and at < since + 2 * DAY:
        wanted.append(at)
        at = times.next_after(at)
    facts = {("delay" if name == "in_" else name): value for name, value in schedule.items()}
    assert slots_between(ScheduleFacts(**facts, anchor=since + 5), since, since + 2 * DAY) == wanted != []


def test_what_it_does_not_know():
    for facts in (ScheduleFacts(), ScheduleFacts(cron="x"), ScheduleFacts(every=1000, tz="Mars/Base")):
        with pytest.raises(CannotTell):
            slots_between(facts, 0, DAY)


def test_a_verdict():
    rows = [LedgerEntry("a", 10), LedgerEntry("b", 20, 40), LedgerEntry("n", 60, next=True)]
    good = judge([10, 20, 30, 40, 60, 70], rows)
    assert (good.decided, good.waiting, good.missing, good.twice) == (5, 1, [], [])
    assert judge([10, 50], rows).missing == [50]
    assert judge([70], [LedgerEntry("a", 10)]).missing == [70], "without a next run nobody will decide it"
    assert judge([10, 30], [*rows, LedgerEntry("x", 30), LedgerEntry("a", 10)]).twice == [30]
