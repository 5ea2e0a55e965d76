"""Cron as the Go library robfig/cron reads it, which Kubernetes uses.

It differs from Unix cron: `*/2` as a day does not count as `*`, so with a weekday beside it days that match either
fire; and when clocks change it fires whenever they show a time that matches: never in a gap, twice in a fold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from onthedot.importers.cron_sets import MONTH_NAMES, WEEKDAY_NAMES, CronFields, NotExpressible, compact, listed

__all__ = ["read_robfig"]

_LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_MONTHS = {name.lower(): number for number, name in enumerate(MONTH_NAMES, 1)}
_WEEKDAYS = {name.lower(): number for number, name in enumerate(WEEKDAY_NAMES)}
_NAMES: tuple[Mapping[str, int], ...] = ({}, {}, {}, _MONTHS, _WEEKDAYS)
_TERM = re.compile(r"(?:([*?])|(\w+)(?:-(\w+))?)(?:/(\d+))?")
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def read_robfig(text: str) -> CronFields:
    fields = _MACROS.get(text, text).split()
    if len(fields) != 5:
        raise NotExpressible(f"expected 5 fields, found {len(fields)}")
    (minutes, _), (hours, _), (days, any_day), (months, _), (weekdays, any_weekday) = (
        _read(field, place) for place, field in enumerate(fields)
    )
    either = not any_day and not any_weekday
    return CronFields(
        minutes=minutes,
        hours=hours,
        days=listed(days) if either else compact(days, 1, 31) if not any_day else "*",
        months=compact(months, 1, 12),
        weekdays=listed(weekdays) if either else compact(weekdays, 0, 6) if not any_weekday else "*",
    )


def _read(field: str, place: int) -> tuple[frozenset[int], bool]:
    """The values, and whether the field counts as `*`."""
    low, high = _LIMITS[place]
    values: set[int] = set()
    star = False
    for term in field.split(","):
        match = _TERM.fullmatch(term)
        if match is None:
            raise NotExpressible(f"field {field!r} is not valid")
        step = int(match[4] or 1)
        if match[1]:
            first, last = low, high
            star = star or step == 1
        else:
            first = _number(match[2], place)
            last = _number(match[3], place) if match[3] else high if match[4] else first
        if not (low <= first <= last <= high and step):
            raise NotExpressible(f"field {field!r} is not valid: values are {low} to {high}")
        values.update(range(first, last + 1, step))
    return frozenset(values), star


def _number(text: str, place: int) -> int:
    if text.isdecimal():
        return int(text)
    try:
        return _NAMES[place][text.lower()]
    except KeyError:
        raise NotExpressible(f"{text!r} is not valid") from None
