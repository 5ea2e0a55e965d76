"""Schedules in words, and what previews remark."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from onthedot.errors import Invalid
from onthedot.model.duration import Duration
from onthedot.model.schedule import Schedule
from onthedot.timing import compile_schedule, describe, remarks
from tests.unit.timing.changes import ms
from tests.unit.timing.test_against_oracle import FIVE, SIX, table


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Schedule(cron="0 3 * * *"), "At 03:00"),
        (Schedule(cron="0 3 * * *", tz="Europe/Berlin"), "At 03:00"),
        (Schedule(cron="15 30 3 * * *"), "At 03:30:15"),
        (Schedule(cron="@daily"), "At 00:00"),
        (Schedule(cron="@hourly"), "At the start of every hour"),
        (Schedule(cron="* * * * *"), "Every minute"),
        (Schedule(cron="* * * * * *"), "Every second"),
        (Schedule(cron="0 9 * * mon-fri"), "At 09:00 on Monday through Friday"),
        (Schedule(cron="0 0 L * *"), "At 00:00 on the last day of every month"),
        (Schedule(cron="0 0 29 2 *"), "At 00:00 on February 29"),
        (Schedule(cron="*/10 * * * * *"), "Every 10 seconds"),
        (Schedule(cron="*/5 * * * *"), "Every 5 minutes"),
        (Schedule(cron="0 */5 * * * * "), "Every 5 minutes"),
        (Schedule(cron="*/2 9-17 * * mon"), "Every 2 minutes from 09:00 through 17:59 on Monday"),
        (Schedule(cron="*/15 */2 * * *"), "Every 15 minutes of every second hour"),
        (Schedule(cron="*/10 5 * * * *"), "Every 10 seconds at minute 5 past every hour"),
        (Schedule(cron="0 */2 * * *"), "Every 2 hours"),
        (Schedule(cron="30 */6 * * *"), "Every 6 hours at minute 30"),
        (Schedule(cron="*/7 * * * *"), "Every 7 minutes (counted from the start of every hour)"),
        (Schedule(cron="0 */5 * * *"), "Every 5 hours (counted from the start of every day)"),
        (Schedule(every=Duration(90_000)), "Every 90 seconds"),
        (Schedule(every=Duration(1000)), "Every second"),
        (Schedule(every=Duration(60_000)), "Every minute"),
        (Schedule(every=Duration(7_200_000)), "Every 2 hours"),
        (Schedule(every=Duration(86_400_000)), "Every day"),
        (Schedule(every=Duration(250)), "Every 250 milliseconds"),
        (Schedule(every=Duration(2750)), "Every 2.75 seconds"),
        (Schedule(every=Duration(90_500)), "Every 90.5 seconds"),
        (Schedule(in_=Duration(10_000)), "Once, 10 seconds after it is created"),
        (Schedule(at="2026-03-29T02:30:00", tz="Europe/Berlin"), "Once at 2026-03-29T01:00:00.000Z"),
        (Schedule(at="2026-03-29T02:30:00Z"), "Once at 2026-03-29T02:30:00.000Z"),
    ],
)
def test_described(schedule: Schedule, words: str) -> None:
    assert describe(schedule) == words


def test_h_is_described_as_what_it_is_for_this_job() -> None:
    assert describe(Schedule(cron="H 3 * * *"), seed="a") != describe(Schedule(cron="H 3 * * *"), seed="b")


@pytest.mark.parametrize(
    "schedule", [Schedule(), Schedule(cron="x"), Schedule(at="x"), Schedule(cron="* * * * *", tz="x")]
)
def test_what_can_not_be_described(schedule: Schedule) -> None:
    with pytest.raises(Invalid):
        describe(schedule)
    with pytest.raises(Invalid):
        remarks(schedule, [])


@settings(max_examples=150, deadline=None)
@given(cron=FIVE | SIX)
def test_every_expression_has_words(cron: str) -> None:
    if table(cron, "UTC") is not None:
        assert describe(Schedule(cron=cron))[0].isupper()


def noted(cron: str, zone: str, after: str, count: int) -> list[str]:
    schedule = Schedule(cron=cron, tz=zone)
    timetable, t, fires = compile_schedule(schedule, anchor=0), ms(after), []
    for _ in range(count):
        slot = timetable.next_after(t)
        assert slot is not None
        fires.append(slot)
        t = slot
    return remarks(schedule, fires)


APIA = "Zone change: on 2011-12-30 clocks in Pacific/Apia go from 00:00 to 2011-12-31 00:00, "
GAP = "DST: on 2026-03-29 clocks in Europe/Berlin go from 02:00 to 03:00, "
FOLD = "DST: on 2026-10-25 clocks in Europe/Berlin go from 03:00 to 02:00, "


@pytest.mark.parametrize(
    ("cron", "zone", "after", "count", "expected"),
    [
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00Z",
            1,
            [GAP + "skipping 02:30; it fires at 03:00 instead (2026-03-29T01:00:00.000Z)"],
        ),
        ("30 2 * * *", "Europe/Berlin", "2026-03-27T00:00Z", 2, []),  # the moved one is not among them
        ("30 4 * * *", "Europe/Berlin", "2026-03-27T00:00Z", 5, []),
        (
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:15Z",
            4,
            [GAP + "skipping 02:00, 02:30; it does not fire at skipped times"],
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00Z",
            1,
            [FOLD + "repeating 02:30; it fires the first time only"],
        ),
        (
            "*/10 * * * *",
            "Europe/Berlin",
            "2026-10-24T23:55Z",
            12,
            [FOLD + "repeating 02:00, 02:10, 02:20 …; it fires both times"],
        ),
        (
            "0 9 * * *",
            "Pacific/Apia",
            "2011-12-29T20:00Z",
            1,
            [
                APIA + "skipping 09:00; it fires at 2011-12-31 00:00 instead (2011-12-30T10:00:00.000Z)",
            ],
        ),
        ("0 3 * * *", "UTC", "2026-03-28T12:00Z", 5, []),
    ],
)
def test_clocks(cron: str, zone: str, after: str, count: int, expected: list[str]) -> None:
    assert noted(cron, zone, after, count) == expected


def test_a_year_of_fires_tells_both_changes() -> None:
    found = noted("30 2 * * *", "Europe/Berlin", "2026-01-01T00:00Z", 365)
    assert [remark[8:18] for remark in found] == ["2026-03-29", "2026-10-25"]


def test_a_century_is_not_told_in_full() -> None:
    schedule = Schedule(cron="30 2 * * *", tz="Europe/Berlin")
    found = remarks(schedule, [ms("2026-01-01T01:30:00Z"), ms("2126-01-01T01:30:00Z")])
    assert len(found) <= 10


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 0 29 2 *", ["fires only on February 29, in leap years"]),
        ("0 0 31 * *", ["fires only in months that have a day 31; use L for the last day of every month"]),
        ("0 0 13 * FRI", ["both day-of-month and day-of-week are set: it fires when either matches"]),
        ("0 0 */2 * FRI", []),
        ("*/7 * * * *", ["*/7 restarts every hour, so its last interval is shorter than 7 minutes"]),
        ("0 */5 * * *", ["*/5 restarts every day, so its last interval is shorter than 5 hours"]),
        ("*/45 * * * * *", ["*/45 restarts every minute, so its last interval is shorter than 45 seconds"]),
        ("*/15,7 */6 * * *", []),
        (
            "H 3 * * *",
            ["H is a value derived from the job's key: fixed for each job, different between jobs"],
        ),
    ],
)
def test_other_remarks(cron: str, expected: list[str]) -> None:
    assert remarks(Schedule(cron=cron), []) == expected


@pytest.mark.parametrize(
    ("schedule", "fires", "expected"),
    [
        (
            Schedule(at="2026-03-29T02:30", tz="Europe/Berlin"),
            [],
            ["2026-03-29 02:30 does not exist in Europe/Berlin: it fires at 03:00, the next valid time"],
        ),
        (
            Schedule(at="2026-10-25T02:30", tz="Europe/Berlin"),
            [],
            ["2026-10-25 02:30 occurs twice in Europe/Berlin: it fires the first time"],
        ),
        (Schedule(at="2026-10-25T02:30Z", tz="Europe/Berlin"), [], []),
        (Schedule(at="2026-07-25T02:30", tz="Europe/Berlin"), [], []),
        (Schedule(at="2026-07-25T02:30", tz="Europe/Berlin", end="2026-01-01"), [], []),
        (Schedule(in_=Duration(5)), [5], []),
        (
            Schedule(every=Duration(86_400_000), tz="Europe/Berlin"),
            [ms("2026-03-28T12:00Z"), ms("2026-03-29T12:00Z")],
            ["`every` counts elapsed time, so the local time in Europe/Berlin shifts when clocks change"],
        ),
        (Schedule(every=Duration(86_400_000)), [ms("2026-03-28T12:00Z"), ms("2026-03-29T12:00Z")], []),
    ],
)
def test_remarks_on_the_other_kinds(schedule: Schedule, fires: list[int], expected: list[str]) -> None:
    assert remarks(schedule, fires) == expected
