"""All slots of a schedule (as written, in JSON) in a stretch of time. Cron is walked second by second."""

from __future__ import annotations

import bisect
import functools
import re
from datetime import datetime
from typing import Any

from tests.unit.timing.oracle import fields_of, may_fire, slots

__all__ = ["duration_of", "is_one_off", "slots_of"]

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
_UNITS = {"ms": 1, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND, "d": 86_400 * SECOND}


def is_one_off(schedule: dict[str, Any]) -> bool:
    return "at" in schedule or "in" in schedule


def slots_of(schedule: dict[str, Any], *, anchor: int, after: int, until: int) -> list[int]:
    """The slots in (after, until]. `anchor`: when the schedule was given, for `every`, `in` and `count`."""
    if "count" in schedule:
        endless = {name: value for name, value in schedule.items() if name != "count"}
        counted, walked = list[int](), anchor
        while walked < until and len(counted) < schedule["count"]:  # not all seconds up to a slot of the next year
            end = min(until, walked + HOUR)
            counted += slots_of(endless, anchor=anchor, after=walked, until=end)
            walked = end
        return _within(counted[: schedule["count"]], after, until)
    if "at" in schedule:
        return _within([_instant(schedule["at"])], after, until)
    if "in" in schedule:
        return _within([anchor + duration_of(schedule["in"])], after, until)
    if "every" in schedule:
        gap = duration_of(schedule["every"])
        first = anchor + gap * max(1, (after - anchor) // gap)
        return _within(list(range(first, until + 1, gap)), after, until)
    return _cron(schedule["cron"], schedule.get("tz", "UTC"), after, until)


def _cron(text: str, zone: str, after: int, until: int) -> list[int]:
    """Walked in whole hours, so that what was walked once serves all jobs with this expression; a moment in its minute:
    a seed in which thousands of slots of the coming years are cancelled asks for each by itself."""
    tick = SECOND if len(fields_of(text)) == 6 else MINUTE
    if until - after <= SECOND:
        return _within(slots(text, zone, until - until % MINUTE, until + 1, tick), after, until)
    found: list[int] = []
    for begin in range(after - after % HOUR, until + 1, HOUR):
        if _may_fire(text, begin - begin % DAY):
            found.extend(_walked(text, zone, begin, begin + HOUR, tick))
    return _within(found, after, until)


@functools.lru_cache(maxsize=8192)  # worlds begin at few moments: what one seed walked serves others
def _walked(text: str, zone: str, begin: int, end: int, tick: int) -> list[int]:
    return slots(text, zone, begin, end, tick)


@functools.lru_cache(maxsize=65536)
def _may_fire(text: str, day: int) -> bool:
    """Most hours of the years up to a slot that a user cancelled need not be walked."""
    return may_fire(text, day) or may_fire(text, day + DAY - 1)


def _within(found: list[int], after: int, until: int) -> list[int]:
    return found[bisect.bisect_right(found, after) : bisect.bisect_right(found, until)]


def _instant(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def duration_of(value: Any) -> int:
    """A number of seconds, or such as "1h30m" and "1.5s"."""
    if isinstance(value, int | float):
        return round(value * SECOND)
    parts = re.findall(r"([\d.]+)(ms|s|m|h|d)", value)
    return round(sum(float(number) * _UNITS[unit] for number, unit in parts))
