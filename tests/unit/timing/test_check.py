"""check_schedule: every problem, with path, given and accepted; nothing else is ever raised."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onthedot.errors import FieldProblem, Invalid, NotAvailable
from onthedot.model.decoding import encode_json
from onthedot.model.duration import Duration
from onthedot.model.schedule import Schedule
from onthedot.timing import check_schedule, compile_schedule, describe, plain_delay, remarks
from tests.unit.timing.changes import ms

NOW = ms("2026-11-15T12:00:00Z")


def problems(schedule: Schedule, changed: bool = True) -> dict[str, FieldProblem]:
    try:
        check_schedule(schedule, now=NOW, changed=changed)
    except Invalid as invalid:
        return {problem.path: problem for problem in invalid.problems}
    return {}


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(cron="0 3 * * *", tz="Europe/Berlin"),
        Schedule(cron="0 0 29 2 *"),
        Schedule(cron="H H * * *"),
        Schedule(every=Duration(100)),
        Schedule(cron="*/60 */24 */31 */12 */7"),
        Schedule(every=Duration(1000), start="2020-01-01", end="2030-01-01", count=5),
        Schedule(at="2026-11-15T12:00:00.001Z"),
        Schedule(at="2026-11-15T13:00:01", tz="Europe/Berlin"),
        Schedule(in_=Duration(1)),
        Schedule(cron="0 9 * * *", start="2026-11-16", end="2026-11-16"),
    ],
)
def test_good(schedule: Schedule) -> None:
    assert problems(schedule) == {}
    assert problems(schedule, changed=False) == {}


@pytest.mark.parametrize(
    ("schedule", "path", "message"),
    [
        (Schedule(), "schedule", "no schedule type given"),
        (Schedule(cron="* * * * *", in_=Duration(1)), "schedule", "more than one schedule type given: cron, in"),
        (Schedule(every=Duration(0)), "schedule.every", "must be more than zero"),
        (Schedule(in_=Duration(0)), "schedule.in", "must be more than zero"),
        (Schedule(in_=Duration(9 * 10**15)), "schedule.in", "out of range"),
        (Schedule(cron="0 0 31 2 *"), "schedule.cron", "never fires: none of the given months has this day"),
        (Schedule(cron="x"), "schedule.cron", "has 1 field, expected 5 or 6"),
        (Schedule(cron="@reboot"), "schedule.cron", "@reboot is not supported"),
        (Schedule(at="2026-11-15T12:00:00Z"), "schedule.at", "is in the past"),
        (Schedule(at="2026-11-15T12:59:59", tz="Europe/Berlin"), "schedule.at", "is in the past"),
        (Schedule(at="soon"), "schedule.at", "not a valid date and time"),
        (Schedule(at="9999-12-31T23:59:59Z"), "schedule.at", "out of range"),
        (
            Schedule(cron="* * * * *", tz="europe/berlin"),
            "schedule.tz",
            "unknown time zone; did you mean Europe/Berlin",
        ),
        (Schedule(cron="* * * * *", tz="../etc/passwd"), "schedule.tz", "unknown time zone"),
        (Schedule(cron="* * * * *", start="2027-01-02", end="2027-01-01"), "schedule.end", "must be after start"),
        (
            Schedule(cron="* * * * *", start="2027-01-01T00:00Z", end="2027-01-01T00:00Z"),
            "schedule.end",
            "must be after start",
        ),
        (Schedule(cron="* * * * *", end="2026-11-14"), "schedule", "never fires: no fire time is left after now"),
        (Schedule(cron="0 0 29 2 *", end="2027-12-31"), "schedule", "never fires: no fire time is left after now"),
        (Schedule(every=Duration(10**9), end="2026-11-16"), "schedule", "never fires: no fire time is left after now"),
        (Schedule(at="2027-01-01T00:00:00Z", end="2026-12-31T00:00:00Z"), "schedule", "never fires"),
    ],
)
def test_bad(schedule: Schedule, path: str, message: str) -> None:
    (problem,) = problems(schedule).values()
    assert problem.path == path
    assert problem.message.startswith(message)
    assert problem.accepted


def test_all_problems_at_once() -> None:
    schedule = Schedule(cron="60 * * * *", every=Duration(0), at="x", tz="Mars", start="y", end="z", rrule="q")
    assert set(problems(schedule)) == {
        "schedule",
        "schedule.cron",
        "schedule.every",
        "schedule.at",
        "schedule.tz",
        "schedule.start",
        "schedule.end",
        "schedule.rrule",
    }


def test_what_was_given_comes_back() -> None:
    found = problems(Schedule(cron="60 * * * *", tz="Europe/Belrin", start="someday"))
    assert found["schedule.cron"].given == "60"
    assert found["schedule.tz"].given == "Europe/Belrin"
    assert "Europe/Berlin" in found["schedule.tz"].message
    assert found["schedule.start"].given == "someday"


def test_a_time_that_has_passed_is_fine_where_nothing_changed() -> None:
    for schedule in (Schedule(at="2020-01-01T00:00:00Z"), Schedule(cron="* * * * *", end="2020-01-01")):
        assert problems(schedule, changed=True) != {}
        assert problems(schedule, changed=False) == {}


def test_an_impossible_schedule_stays_impossible() -> None:
    assert set(problems(Schedule(cron="0 0 31 2 *"), changed=False)) == {"schedule.cron"}


@pytest.mark.parametrize("schedule", [Schedule(rrule="FREQ=DAILY"), Schedule(cron="* * * * *", exclude=["DE"])])
def test_not_available(schedule: Schedule) -> None:
    with pytest.raises(NotAvailable) as caught:
        check_schedule(schedule, now=NOW)
    (problem,) = caught.value.problems
    assert problem.message.startswith("not available")
    assert problem.given in ("FREQ=DAILY", '["DE"]')


def test_not_available_beside_another_mistake_is_invalid() -> None:
    with pytest.raises(Invalid) as caught:
        check_schedule(Schedule(rrule="x", tz="Mars"), now=NOW)
    assert not isinstance(caught.value, NotAvailable)


TEXT = st.text(max_size=40)
CRONISH = st.lists(
    st.sampled_from(["*", "0", "*/7", "L", "H", "MON#1", "29", "2", "5L", "x", "1-1/9", "99"]), max_size=7
).map(" ".join)
TIMES = st.datetimes().map(lambda d: d.isoformat()) | st.datetimes().map(lambda d: d.isoformat() + "-12:00") | TEXT
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Apia", "Etc/GMT+12", "Pacific/Kiritimati"]) | TEXT


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@settings(max_examples=400, deadline=None)
@given(
    cron=maybe(CRONISH | TEXT),
    every=maybe(st.integers(0, 2**63 - 1).map(Duration)),
    at=maybe(TIMES),
    in_=maybe(st.integers(0, 2**63 - 1).map(Duration)),
    tz=ZONES,
    start=maybe(TIMES),
    end=maybe(TIMES),
    now=st.integers(0, 4 * 10**12) | st.integers(-(2**60), 2**60),
    changed=st.booleans(),
)
def test_nothing_but_invalid_is_ever_raised(now: int, changed: bool, **fields: Any) -> None:
    schedule = Schedule(**fields)
    found: tuple[FieldProblem, ...] = ()
    try:
        check_schedule(schedule, now=now, changed=changed)
    except Invalid as invalid:
        found = invalid.problems
    for problem in found:
        assert problem.path.startswith("schedule")
        assert problem.message
        assert len(str(problem.given)) <= 200
    if not found:
        timetable = compile_schedule(schedule, anchor=now)
        fires: list[int] = []
        slot = timetable.next_after(now)
        while slot is not None and len(fires) < 3:
            fires.append(slot)
            slot = timetable.next_after(slot)
        assert fires or not changed
        assert describe(schedule)
        assert all(isinstance(remark, str) for remark in remarks(schedule, fires))


def test_problems_can_be_written_as_json() -> None:
    found = problems(Schedule(cron="\ud800", tz="\ud800"))
    assert set(found) == {"schedule.cron", "schedule.tz"}
    assert encode_json(list(problems(Schedule(cron="ü", tz="ü")).values()))


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(in_=Duration(1000)),
        Schedule(in_=Duration(1000), tz="Europe/Berlin", count=3),
        Schedule(in_=Duration(100 * 366 * 86_400_000)),
    ],
)
def test_a_plain_delay_is_what_compiling_gives(schedule: Schedule) -> None:
    slot = plain_delay(schedule, NOW)
    assert slot is not None
    assert slot == compile_schedule(schedule, anchor=NOW).next_after(NOW)


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(),
        Schedule(every=Duration(1000)),
        Schedule(in_=Duration(0)),
        Schedule(in_=Duration(9 * 10**15)),
        Schedule(in_=Duration(1000), every=Duration(1000)),
        Schedule(in_=Duration(1000), cron="* * * * *"),
        Schedule(in_=Duration(1000), at="2027-01-01T00:00:00Z"),
        Schedule(in_=Duration(1000), rrule="FREQ=DAILY"),
        Schedule(in_=Duration(1000), exclude=["2026-12-25"]),
        Schedule(in_=Duration(1000), tz="Nowhere/Land"),
        Schedule(in_=Duration(1000), start="2027-01-01"),
        Schedule(in_=Duration(1000), end="2026-01-01"),
    ],
)
def test_whatever_else_a_schedule_says_is_compiled(schedule: Schedule) -> None:
    assert plain_delay(schedule, NOW) is None


@pytest.mark.parametrize(
    ("schedule", "path"),
    [
        (Schedule(every=Duration(1)), "schedule.every"),
        (Schedule(every=Duration(99)), "schedule.every"),
        (Schedule(cron="*/90 * * * *"), "schedule.cron"),
        (Schedule(cron="5,*/61 * * * * *"), "schedule.cron"),
        (Schedule(cron="0 */25 * * *"), "schedule.cron"),
        (Schedule(cron="0 0 1 */13 *"), "schedule.cron"),
    ],
)
def test_what_is_a_slip_of_the_pen_is_refused_in_a_new_schedule_only(schedule, path):
    """A job that was made with it before goes on."""
    assert list(problems(schedule)) == [path]
    assert problems(schedule, changed=False) == {}


def test_whether_it_is_past_may_be_left_to_others():
    check_schedule(Schedule(at="2001-01-01T00:00:00Z"), now=NOW, timed=False)
    with pytest.raises(Invalid, match="is too short"):
        check_schedule(Schedule(every=Duration(1)), now=NOW, timed=False)
