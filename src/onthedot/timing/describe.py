"""A schedule in plain words."""

from __future__ import annotations

import re

from cronsim.explain import ORDINALS, Expression

from onthedot.errors import Invalid
from onthedot.model.duration import DAY, HOUR, MINUTE, SECOND
from onthedot.model.instant import format_instant
from onthedot.model.schedule import Schedule
from onthedot.timing.compile import read_time, refuse_unknown_zone, shape_problems
from onthedot.timing.cron import cron_timetable

__all__ = ["describe"]

_UNITS = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second"))


def describe(schedule: Schedule, seed: str = "") -> str:
    """ "At 03:00", "Every 90 seconds", "Once at 2026-03-29T01:30:00.000Z", "Once, 10 seconds after it is created"."""
    if problems := shape_problems(schedule):
        raise Invalid(problems)
    refuse_unknown_zone(schedule.tz)
    if schedule.cron is not None:
        parts = cron_timetable(schedule.cron, schedule.tz, seed).parts
        return _plainly(Expression(list(parts)).explain().removesuffix(" every day"))
    if schedule.every is not None:
        amount = in_words(schedule.every)
        return f"Every {amount.removeprefix('1 ')}"
    if schedule.in_ is not None:
        return f"Once, {in_words(schedule.in_)} after it is created"
    at = read_time("schedule.at", schedule.at, schedule.tz)
    assert at is not None  # one kind is given, and it is none of the others
    return f"Once at {format_instant(at)}"


_NUMBERS = {word: number for number, word in ORDINALS.items() if number > 1}
_NTH = rf"({'|'.join(_NUMBERS)}|\d+th)"
_EVERY_NTH = re.compile(rf"^Every {_NTH} (second|minute)(?: of every (minute|hour))?(?= |$)")
_EVERY_NTH_HOUR = re.compile(rf"^At minute (\d+) past every {_NTH} hour(?= |$)")
_IN_ONE_ROUND = {"second": 60, "minute": 60, "hour": 24}


def _plainly(text: str) -> str:
    """ "Every 10th second of every minute" → "Every 10 seconds". Where the steps don't come out even, from where they
    are counted: every 7 minutes begins anew each hour."""
    if found := _EVERY_NTH.match(text):
        nth, unit, round_ = found.groups()
        rest = re.sub(r"^ past (?=every|hour)", " of ", text[found.end() :])
        return _steps(nth, unit, "", counted=round_) + rest
    if found := _EVERY_NTH_HOUR.match(text):
        minute, nth = found.groups()
        at = "" if minute == "0" else f" at minute {minute}"
        return _steps(nth, "hour", at, counted="day") + text[found.end() :]
    return text


def _steps(nth: str, unit: str, at: str, *, counted: str | None) -> str:
    amount = _NUMBERS.get(nth) or int(nth.removesuffix("th"))
    even = counted is None or _IN_ONE_ROUND[unit] % amount == 0
    return f"Every {amount} {unit}s{at}" + ("" if even else f" (counted from the start of every {counted})")


def in_words(ms: int) -> str:
    """In the largest unit that gives a whole number: 90000 → "90 seconds", 7200000 → "2 hours"; or 2750 → "2.75
    seconds"."""
    for size, name in _UNITS:
        if ms % size == 0 and ms >= size:
            amount = ms // size
            return f"{amount} {name}{'s' if amount != 1 else ''}"
    if ms < SECOND:
        return f"{int(ms)} millisecond{'s' if ms != 1 else ''}"
    return f"{ms / SECOND:.3f}".rstrip("0") + " seconds"
