"""Every answer of a cron timetable against a brute-force walk of the wall clock, around changes of the clocks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onthedot.errors import Invalid
from onthedot.model.schedule import Schedule
from onthedot.timing import Timetable, compile_schedule
from tests.unit.timing.changes import CHANGES, ms
from tests.unit.timing.oracle import slots

HOUR, MINUTE, SECOND = 3_600_000, 60_000, 1000
NEAR = 45 * MINUTE
CALM = settings(max_examples=40, deadline=None)


def numbers(low: int, high: int) -> st.SearchStrategy[str]:
    """One term of a plain field: star, number, range, with and without step."""
    one = st.integers(low, high)
    span = st.tuples(one, one).map(lambda pair: f"{min(pair)}-{max(pair)}")
    step = st.integers(1, high).map(lambda n: f"/{n}")
    return st.one_of(
        one.map(str),
        one.map(str),
        st.just("*"),
        span,
        st.tuples(st.just("*") | span | one.map(str), step).map("".join),
    )


def listed(term: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(term, min_size=1, max_size=3).map(",".join)


SECONDS = MINUTES = listed(numbers(0, 59))
NEAR_HOURS = listed(st.sampled_from(["0", "1", "2", "3", "9", "23", "*", "1-3", "*/2", "0-23/3", "22-23", "2/5"]))
DAYS = listed(st.just("*") | st.sampled_from(["L", "LW", "1", "29-31", "4", "*/2", "30"]) | numbers(1, 31))
MONTHS = st.just("*") | listed(numbers(1, 12) | st.sampled_from(["MAR", "OCT-DEC", "JAN"]))
NAMES = st.sampled_from(["SUN", "MON-FRI", "5L", "0L", "SUN#5", "1#1", "7", "5-7", "*/2"])
WEEKDAYS = st.just("*") | st.just("*") | listed(NAMES | numbers(0, 7))
FIVE = st.tuples(MINUTES, NEAR_HOURS, DAYS | st.just("*"), MONTHS, WEEKDAYS).map(" ".join)
SIX = st.tuples(SECONDS, MINUTES, NEAR_HOURS, st.just("*"), st.just("*"), WEEKDAYS).map(" ".join)


def table(cron: str, zone: str) -> Timetable | None:
    try:
        return compile_schedule(Schedule(cron=cron, tz=zone), anchor=0)
    except Invalid:
        return None


def walk(timetable: Timetable, begin: int, end: int) -> list[int]:
    found, slot = [], timetable.next_after(begin - 1)
    while slot is not None and slot < end:
        found.append(slot)
        slot = timetable.next_after(slot)
    return found


def agree(timetable: Timetable, expected: list[int], begin: int, end: int, probes: list[float]) -> None:
    assert walk(timetable, begin, end) == expected, getattr(timetable, "parts", None)
    assert all(a < b for a, b in pairwise(expected))
    middle = (begin + end) // 2
    for n, (a, b) in enumerate(pairwise(expected)):
        if abs(a - middle) < NEAR or n % 7 == 0:  # all where the clocks change, some where nothing does
            assert timetable.latest_until(b - 1) == a
    moments = sorted(begin + int(p * (end - begin - 1)) for p in probes)
    for t in moments:
        until = [s for s in expected if s <= t]
        if until:
            assert timetable.latest_until(t) == until[-1]
        after = [s for s in expected if s > t]
        if after:
            assert timetable.next_after(t) == after[0]
        assert timetable.is_slot(t) == (t in expected)
    for low, high in pairwise(moments):
        assert timetable.count_between(low, high) == min_or_none(sum(low < s <= high for s in expected))
    assert all(timetable.is_slot(s) for s in expected[:20])


def min_or_none(count: int) -> int | None:
    return count if count <= 10_000 else None


PROBES = st.lists(st.floats(0, 1), min_size=2, max_size=6)


@pytest.mark.parametrize(("zone", "change"), CHANGES)
@CALM
@given(cron=FIVE, probes=PROBES)
def test_five_fields(zone: str, change: str, cron: str, probes: list[float]) -> None:
    begin, end = ms(change) - 30 * HOUR, ms(change) + 30 * HOUR
    timetable = table(cron, zone)
    expected = slots(cron, zone, begin, end, MINUTE)
    if timetable is None:
        assert expected == []
    else:
        agree(timetable, expected, begin, end, probes)


@pytest.mark.parametrize(("zone", "change"), CHANGES)
@settings(max_examples=10, deadline=None)
@given(cron=SIX, probes=PROBES)
def test_six_fields(zone: str, change: str, cron: str, probes: list[float]) -> None:
    begin, end = ms(change) - 2 * HOUR, ms(change) + 2 * HOUR
    timetable = table(cron, zone)
    assert timetable is not None
    agree(timetable, slots(cron, zone, begin, end, SECOND), begin, end, probes)


@CALM
@given(
    day=listed(st.sampled_from(["L", "LW", "29", "31", "30", "*"]) | numbers(1, 31)),
    month=listed(st.sampled_from(["2", "FEB", "2,12", "*"]) | numbers(1, 12)),
    weekday=listed(NAMES | numbers(0, 7) | st.just("*")),
    year=st.sampled_from([1896, 1996, 2023, 2096, 2396]),
)
def test_days_over_years(day: str, month: str, weekday: str, year: int) -> None:
    """Leap years, centuries, last days: at noon of each day of nine years, walked day by day."""
    cron = f"0 12 {day} {month} {weekday}"
    begin, end = ms(f"{year}-01-01T12:00:00Z"), ms(f"{year + 9}-01-01T12:00:00Z")
    expected = slots(cron.replace(" 12 ", " */12 ", 1), "UTC", begin, end, 24 * HOUR)
    timetable = table(cron, "UTC")
    if timetable is None:
        assert expected == []
    else:
        assert walk(timetable, begin, end) == expected, getattr(timetable, "parts", None)
        assert timetable.count_between(begin - 1, end - 1) == len(expected)
        if expected:
            assert timetable.latest_until(end - 1) == expected[-1]
