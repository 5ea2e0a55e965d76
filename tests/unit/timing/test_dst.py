"""Well-known days on which clocks change, as a table that a person can check by hand."""

from __future__ import annotations

import pytest

from onthedot.model.instant import format_instant
from onthedot.model.schedule import Schedule
from onthedot.timing import compile_schedule
from tests.unit.timing.changes import ms

GOLDEN = [  # cron, zone, after, the next slots (UTC, month first)
    # A daily job in the gap fires once, when the gap ends; the day after at its own time again.
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "03-29T01:00 03-30T00:30 03-31T00:30"),
    ("0 30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "03-29T01:00 03-30T00:30"),
    ("0,15,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "03-29T01:00 03-30T00:00"),
    ("0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "03-29T01:00 03-30T00:00 03-30T01:00"),
    ("30 2 * * *", "America/New_York", "2026-03-07T12:00Z", "03-08T07:00 03-09T06:30"),
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00Z", "10-03T15:30 10-04T15:15"),
    ("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00Z", "11-04T03:00 11-05T02:00"),
    ("@daily", "America/Sao_Paulo", "2018-11-03T12:00Z", "11-04T03:00 11-05T02:00"),
    ("0 9 * * *", "Pacific/Apia", "2011-12-29T20:00Z", "12-30T10:00 12-30T19:00 12-31T19:00"),
    ("0 9 30 12 *", "Pacific/Apia", "2011-01-01T00:00Z", "12-30T10:00 12-29T19:00"),
    ("30 1 * * *", "Antarctica/Troll", "2026-03-28T12:00Z", "03-29T01:00 03-29T23:30"),
    ("5 0 * * *", "Asia/Kathmandu", "1985-12-31T00:00Z", "12-31T18:30 01-01T18:20"),
    # A daily job in the fold fires on the first pass only.
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", "10-25T00:30 10-26T01:30"),
    ("0 30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", "10-25T00:30 10-26T01:30"),
    ("30 1 * * *", "America/New_York", "2026-10-31T12:00Z", "11-01T05:30 11-02T06:30"),
    ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00Z", "04-04T14:45 04-05T15:15"),
    ("30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00Z", "02-18T01:30 02-19T02:30"),
    ("30 1 * * *", "Europe/Dublin", "2026-10-24T12:00Z", "10-25T00:30 10-26T01:30"),
    ("30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00Z", "02-15T01:30 02-16T02:30"),
    # Interval-like: one slot per elapsed step, through the gap and in both passes of the fold.
    ("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:15Z", "03-29T00:30 03-29T01:00 03-29T01:30"),
    ("15 * * * *", "Europe/Berlin", "2026-03-28T23:30Z", "03-29T00:15 03-29T01:15 03-29T02:15"),
    ("0 * * * *", "Europe/Berlin", "2026-10-24T23:30Z", "10-25T00:00 10-25T01:00 10-25T02:00"),
    ("@hourly", "America/New_York", "2026-11-01T04:30Z", "11-01T05:00 11-01T06:00 11-01T07:00"),
    ("*/20 * * * * *", "Europe/Berlin", "2026-10-25T00:59:30Z", "10-25T00:59:40 10-25T01:00 10-25T01:00:20"),
    ("*/15 2 * * *", "Europe/Berlin", "2026-10-25T00:40Z", "10-25T00:45 10-25T01:00 10-25T01:15"),
    ("*/15 2 * * *", "Europe/Berlin", "2026-03-28T01:40Z", "03-28T01:45 03-30T00:00"),
    ("0 */2 * * *", "Antarctica/Troll", "2026-10-24T23:00Z", "10-25T00:00 10-25T02:00 10-25T04:00"),
    ("*/30 * * * *", "Australia/Lord_Howe", "2026-04-04T14:15Z", "04-04T14:30 04-04T15:00 04-04T15:30"),
    # No clock changes at all.
    ("0 3 * * *", "Asia/Kolkata", "2026-03-28T12:00Z", "03-28T21:30 03-29T21:30"),
    ("0 3 * * *", "UTC", "2026-03-28T12:00Z", "03-29T03:00 03-30T03:00"),
]


def _short(slot: int) -> str:
    return format_instant(slot)[5:16] if slot % 60_000 == 0 else format_instant(slot)[5:19]


@pytest.mark.parametrize(("cron", "zone", "after", "expected"), GOLDEN)
def test_golden(cron: str, zone: str, after: str, expected: str) -> None:
    timetable = compile_schedule(Schedule(cron=cron, tz=zone), anchor=0)
    t, found = ms(after), []
    for _ in expected.split():
        slot = timetable.next_after(t)
        assert slot is not None
        assert timetable.latest_until(slot) == slot
        found.append(_short(slot))
        t = slot
    assert found == expected.split()
    assert timetable.count_between(ms(after), t) == len(found)


@pytest.mark.parametrize(
    "text", ["0 2 * * *", "0,30 2,3 * * *", "5 0 2 * * MON", "@daily", "H H * * *", "H(0-5) 2 * * *"]
)
def test_numbers_and_lists_are_fixed_time(text: str) -> None:
    assert compile_schedule(Schedule(cron=text), anchor=0).fixed_time  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    ["* 2 * * *", "0 * * * *", "0-1 2 * * *", "0 2-3 * * *", "*/5 2 * * *", "* 0 2 * * *", "H/15 2 * * *", "@hourly"],
)
def test_stars_ranges_and_steps_are_interval_like(text: str) -> None:
    assert not compile_schedule(Schedule(cron=text), anchor=0).fixed_time  # type: ignore[attr-defined]


def test_a_yearly_burst_inside_the_fold() -> None:
    """What was searched on the first pass comes again on the second: no leap over it, forwards or backwards."""
    late = compile_schedule(Schedule(cron="45-50 2 25 10 *", tz="Europe/Berlin"), anchor=0)
    assert late.latest_until(ms("2026-10-25T01:10Z")) == ms("2026-10-25T00:50Z")
    early = compile_schedule(Schedule(cron="5-10 2 25 10 *", tz="Europe/Berlin"), anchor=0)
    assert early.next_after(ms("2026-10-25T00:50Z")) == ms("2026-10-25T01:05Z")
    assert early.count_between(ms("2026-10-24T00:00Z"), ms("2026-10-26T00:00Z")) == 12
