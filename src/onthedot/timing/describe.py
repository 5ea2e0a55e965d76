"""A schedule in plain words."""

from __future__ import annotations

from cronsim.explain import Expression

from onthedot.errors import Invalid
from onthedot.model.duration import DAY, HOUR, MINUTE, SECOND
from onthedot.model.instant import format_instant
from onthedot.model.schedule import Schedule
from onthedot.timing.compile import read_time, refuse_unknown_zone, shape_problems
from onthedot.timing.cron import cron_timetable

__all__ = ["describe"]

_UNITS = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second"), (1, "millisecond"))


def describe(schedule: Schedule, seed: str = "") -> str:
    """ "At 03:00", "Every 90 seconds", "Once at 2026-03-29T01:30:00.000Z", "Once, 10 seconds after it is created"."""
    if problems := shape_problems(schedule):
        raise Invalid(problems)
    refuse_unknown_zone(schedule.tz)
    if schedule.cron is not None:
        parts = cron_timetable(schedule.cron, schedule.tz, seed).parts
        return Expression(list(parts)).explain().removesuffix(" every day")
    if schedule.every is not None:
        amount = in_words(schedule.every)
        return f"Every {amount.removeprefix('1 ')}"
    if schedule.in_ is not None:
        return f"Once, {in_words(schedule.in_)} after it is created"
    at = read_time("schedule.at", schedule.at, schedule.tz)
    assert at is not None  # one kind is given, and it is none of the others
    return f"Once at {format_instant(at)}"


def in_words(ms: int) -> str:
    """In the largest unit that gives a whole number: 90000 → "90 seconds", 7200000 → "2 hours"."""
    for size, name in _UNITS:
        if ms % size == 0 and ms >= size:
            amount = ms // size
            return f"{amount} {name}{'s' if amount != 1 else ''}"
    return f"{ms} milliseconds"
