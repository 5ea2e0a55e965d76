"""every, at, in; start and end; the ends of time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onthedot.errors import Invalid, NotAvailable
from onthedot.model.duration import DAY, HOUR, MINUTE, Duration
from onthedot.model.instant import NEVER, format_instant
from onthedot.model.schedule import Schedule
from onthedot.timing import Timetable, compile_schedule
from onthedot.timing.zones import EARLIEST, LATEST
from tests.unit.timing.changes import ms

NOW = ms("2026-11-15T12:00:00Z")


def walk(timetable: Timetable, after: int, count: int) -> list[int]:
    found: list[int] = []
    while len(found) < count and (slot := timetable.next_after(found[-1] if found else after)) is not None:
        found.append(slot)
    return found


def test_every_counts_from_the_anchor() -> None:
    timetable = compile_schedule(Schedule(every=Duration(90_000)), anchor=NOW)
    assert not timetable.one_off
    assert walk(timetable, NOW - DAY, 3) == [NOW + 90_000, NOW + 180_000, NOW + 270_000]
    assert timetable.latest_until(NOW + 89_999) is None
    assert not timetable.is_slot(NOW)


def test_every_counts_from_its_start() -> None:
    schedule = Schedule(every=Duration(HOUR), start="2022-11-21", tz="Europe/Berlin")
    timetable = compile_schedule(schedule, anchor=NOW)
    first = ms("2022-11-20T23:00:00Z")
    assert walk(timetable, 0, 2) == [first, first + HOUR]
    assert timetable.is_slot(first)
    assert timetable.next_after(NOW) == NOW + HOUR


def test_every_does_not_care_for_clocks() -> None:
    timetable = compile_schedule(Schedule(every=Duration(DAY), tz="Europe/Berlin"), anchor=ms("2026-03-27T12:00:00Z"))
    assert {b - a for a, b in pairwise(walk(timetable, 0, 10))} == {DAY}


@given(
    anchor=st.integers(0, 4 * 10**12),
    step=st.integers(1, 10**10),
    after=st.integers(-(10**12), 5 * 10**12),
    span=st.integers(0, 10**9),
)
def test_every_is_arithmetic(anchor: int, step: int, after: int, span: int) -> None:
    timetable = compile_schedule(Schedule(every=Duration(step)), anchor=anchor)
    slot = timetable.next_after(after)
    assert slot is not None
    assert slot > after
    assert (slot - anchor) % step == 0
    assert timetable.is_slot(slot)
    assert timetable.latest_until(slot) == slot
    before = timetable.latest_until(slot - 1)
    assert before == (slot - step if slot > anchor + step else None)
    count = timetable.count_between(after, after + span)
    expected = max(0, (after + span - anchor) // step) - max(0, (after - anchor) // step)
    assert count == (expected if expected <= 10_000 else None)


def test_at_with_an_offset() -> None:
    timetable = compile_schedule(Schedule(at="2026-03-29T02:30:00+02:00", tz="Asia/Tokyo"), anchor=NOW)
    slot = ms("2026-03-29T00:30:00Z")
    assert timetable.one_off
    assert timetable.next_after(0) == timetable.latest_until(NEVER) == slot
    assert timetable.next_after(slot) is None
    assert timetable.latest_until(slot - 1) is None
    assert timetable.is_slot(slot)
    assert not timetable.is_slot(slot + 1)
    assert (timetable.count_between(slot - 1, slot), timetable.count_between(slot, NEVER)) == (1, 0)
    assert timetable.count_between(0, NEVER, limit=0) is None


@pytest.mark.parametrize(
    ("at", "zone", "instant"),
    [
        ("2026-03-29T02:30:00", "Europe/Berlin", "2026-03-29T01:00:00Z"),  # in the gap
        ("2026-10-25T02:30:00", "Europe/Berlin", "2026-10-25T00:30:00Z"),  # in the fold
        ("2026-07-01", "America/New_York", "2026-07-01T04:00:00Z"),
        ("2026-07-01 08:00", "UTC", "2026-07-01T08:00:00Z"),
        ("2026-07-01T08:00:00.250", "UTC", "2026-07-01T08:00:00.250Z"),
    ],
)
def test_at_in_local_time(at: str, zone: str, instant: str) -> None:
    assert compile_schedule(Schedule(at=at, tz=zone), anchor=0).next_after(0) == ms(instant)


def test_in_counts_from_the_anchor() -> None:
    timetable = compile_schedule(Schedule(in_=Duration(10_000)), anchor=NOW)
    assert timetable.one_off
    assert walk(timetable, 0, 5) == [NOW + 10_000]


def test_start_and_end_are_both_inside() -> None:
    schedule = Schedule(cron="0 * * * *", start="2026-11-16T08:00:00Z", end="2026-11-16T10:00:00Z")
    timetable = compile_schedule(schedule, anchor=NOW)
    eight = ms("2026-11-16T08:00:00Z")
    assert walk(timetable, 0, 9) == [eight, eight + HOUR, eight + 2 * HOUR]
    assert timetable.latest_until(NEVER) == eight + 2 * HOUR
    assert timetable.latest_until(eight - 1) is None
    assert timetable.is_slot(eight)
    assert not timetable.is_slot(eight - HOUR)
    assert not timetable.is_slot(eight + 3 * HOUR)
    assert timetable.count_between(0, NEVER) == 3
    assert timetable.count_between(eight, eight + HOUR) == 1
    assert timetable.count_between(NEVER - 1, NEVER) == 0
    assert not timetable.one_off


def test_a_date_as_end_means_all_of_that_day() -> None:
    schedule = Schedule(cron="0 9 * * *", start="2026-11-16", end="2026-11-17", tz="America/New_York")
    timetable = compile_schedule(schedule, anchor=NOW)
    assert walk(timetable, 0, 9) == [ms("2026-11-16T14:00:00Z"), ms("2026-11-17T14:00:00Z")]


def test_bounds_of_a_one_off() -> None:
    outside = compile_schedule(Schedule(at="2026-12-01T00:00:00Z", end="2026-11-30"), anchor=NOW)
    assert outside.one_off
    assert outside.next_after(0) is None
    assert outside.count_between(0, NEVER) == 0


def test_every_within_bounds() -> None:
    schedule = Schedule(every=Duration(MINUTE), start="2026-11-16T00:00:30Z", end="2026-11-16T00:03:29Z")
    timetable = compile_schedule(schedule, anchor=NOW)
    first = ms("2026-11-16T00:00:30Z")
    assert walk(timetable, NOW, 9) == [first, first + MINUTE, first + 2 * MINUTE]


def test_count_is_exact_to_its_limit() -> None:
    timetable = compile_schedule(Schedule(cron="* * * * * *"), anchor=NOW)
    assert timetable.count_between(NOW, NOW + 10_000_000) == 10_000
    assert timetable.count_between(NOW, NOW + 10_001_000) is None
    assert timetable.count_between(NOW, NOW + 10_001_000, limit=10_001) == 10_001
    assert timetable.count_between(NOW, NOW) == 0
    assert timetable.count_between(NOW, NOW - 1) == 0
    minutely = compile_schedule(Schedule(cron="* * * * *", tz="Europe/Berlin"), anchor=NOW)
    year = minutely.count_between(ms("2026-01-01T00:00:00Z") - 1, ms("2027-01-01T00:00:00Z") - 1, limit=10**9)
    assert year == 365 * 24 * 60


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
def test_29_february_over_the_century(zone: str) -> None:
    timetable = compile_schedule(Schedule(cron="0 12 29 2 *", tz=zone), anchor=0)
    slots = walk(timetable, ms("2090-01-01T00:00:00Z"), 4)
    years = [1970 + slot // (365.2425 * DAY) for slot in slots]
    assert years == [2092, 2096, 2104, 2108]
    assert [timetable.latest_until(slot - 1) for slot in slots[1:]] == slots[:-1]
    assert timetable.count_between(slots[0] - 1, slots[-1]) == 4


def test_the_rarest_date_is_found() -> None:
    timetable = compile_schedule(Schedule(cron="0 0 29 2 */7", tz="Europe/Berlin"), anchor=0)  # a Sunday
    slots = walk(timetable, ms("2072-01-01T00:00:00Z"), 3)
    assert slots == [ms("2088-02-28T23:00:00Z"), ms("2128-02-28T23:00:00Z"), ms("2156-02-28T23:00:00Z")]
    assert timetable.latest_until(slots[1] - 1) == slots[0]


ENDS = [EARLIEST - 1, EARLIEST, EARLIEST + 1, 0, LATEST - 1, LATEST, LATEST + 1, NEVER, -NEVER]


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "Europe/Berlin"])
@pytest.mark.parametrize("cron", ["* * * * *", "0 3 * * *", "0 0 29 2 *", "59 59 23 31 12 *"])
def test_no_instant_is_too_far(cron: str, zone: str) -> None:
    timetable = compile_schedule(Schedule(cron=cron, tz=zone), anchor=0)
    for t in ENDS:
        after, until = timetable.next_after(t), timetable.latest_until(t)
        assert after is None or max(t, EARLIEST - 1) < after < LATEST
        assert until is None or EARLIEST <= until <= t
        assert timetable.count_between(t, t + 5) is not None
        assert timetable.is_slot(t) in (True, False)
    assert timetable.next_after(LATEST) is None
    assert timetable.latest_until(EARLIEST - 1) is None


def test_all_of_time_can_be_counted() -> None:
    timetable = compile_schedule(Schedule(cron="0 0 29 2 *"), anchor=0)
    assert timetable.count_between(-NEVER, NEVER) == 2424  # 9997 years of which every fourth but three in 400 leap
    assert compile_schedule(Schedule(cron="* * * * *"), anchor=0).count_between(-NEVER, NEVER) is None


def test_every_ends_with_time() -> None:
    timetable = compile_schedule(Schedule(every=Duration(DAY)), anchor=0)
    assert timetable.next_after(NEVER) is None
    assert timetable.latest_until(NEVER) == LATEST // DAY * DAY
    assert timetable.next_after(-NEVER) == DAY


@pytest.mark.parametrize(
    ("schedule", "path"),
    [
        (Schedule(), "schedule"),
        (Schedule(cron="* * * * *", every=Duration(1)), "schedule"),
        (Schedule(cron="x"), "schedule.cron"),
        (Schedule(every=Duration(0)), "schedule.every"),
        (Schedule(in_=Duration(0)), "schedule.in"),
        (Schedule(in_=Duration(LATEST)), "schedule.in"),
        (Schedule(at="tomorrow"), "schedule.at"),
        (Schedule(at="9999-12-31T23:59:59-12:00"), "schedule.at"),
        (Schedule(at="0001-01-01T00:00:00+14:00"), "schedule.at"),
        (Schedule(at="9999-12-31", tz="Asia/Tokyo"), "schedule.at"),
        (Schedule(cron="* * * * *", tz="Moon/Base"), "schedule.tz"),
        (Schedule(cron="* * * * *", start="x"), "schedule.start"),
        (Schedule(cron="* * * * *", end="9999-12-31"), "schedule.end"),
        (Schedule(cron="* * * * *", end="9998-12-31"), "schedule.end"),
    ],
)
def test_what_can_not_be_compiled(schedule: Schedule, path: str) -> None:
    with pytest.raises(Invalid) as caught:
        compile_schedule(schedule, anchor=NOW)
    assert [problem.path for problem in caught.value.problems] == [path]


def test_what_is_not_built() -> None:
    with pytest.raises(NotAvailable, match=r"schedule\.rrule: not available"):
        compile_schedule(Schedule(rrule="FREQ=DAILY"), anchor=NOW)
    with pytest.raises(NotAvailable, match=r"schedule\.exclude: not available"):
        compile_schedule(Schedule(cron="* * * * *", exclude=["2026-12-24"]), anchor=NOW)


def test_equal_cron_is_compiled_once() -> None:
    one = compile_schedule(Schedule(cron="7 3 * * *", tz="Europe/Berlin"), anchor=1, seed="a")
    two = compile_schedule(Schedule(cron="7 3 * * *", tz="Europe/Berlin", count=3), anchor=2, seed="b")
    assert one is two
    hashed = [compile_schedule(Schedule(cron="H 3 * * *"), anchor=1, seed=seed) for seed in ("a", "b", "a")]
    assert hashed[0] is hashed[2]
    assert hashed[0] is not hashed[1]


@settings(deadline=None)
@given(
    start=st.integers(0, 48).map(lambda h: f"2026-03-{28 + h // 24:02}T{h % 24:02}:15:00"),
    hours=st.integers(1, 30),
    zone=st.sampled_from(["Europe/Berlin", "UTC", "Antarctica/Troll"]),
)
def test_bounds_cut_and_change_nothing_else(start: str, hours: int, zone: str) -> None:
    begin = compile_schedule(Schedule(at=start, tz=zone), anchor=0).next_after(0)
    assert begin is not None
    free = compile_schedule(Schedule(cron="*/20 1-4 * * *", tz=zone), anchor=0)
    end = begin + hours * HOUR
    bounded = compile_schedule(
        Schedule(cron="*/20 1-4 * * *", tz=zone, start=start, end=format_instant(end)),
        anchor=0,
    )
    expected = [slot for slot in walk(free, begin - 1, 200) if slot <= end]
    assert walk(bounded, 0, 200) == expected
    assert bounded.count_between(0, NEVER) == len(expected)
    assert bounded.latest_until(NEVER) == (expected[-1] if expected else None)
