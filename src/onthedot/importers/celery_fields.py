"""Fields of Celery's crontab as sets. Ranges may wrap around (`fri-mon`, `22-4`); days must match both day fields."""

from __future__ import annotations

import re
from collections.abc import Mapping

from onthedot.importers.cron_sets import (
    MONTH_NAMES,
    WEEKDAY_NAMES,
    CronFields,
    NotExpressible,
    compact,
    days_that_match_both,
)

__all__ = ["celery_cron"]

_TERM = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/(\d+))?")
_MONTHS = {name.lower(): number for number, name in enumerate(MONTH_NAMES, 1)}
_WEEKDAYS = {name.lower(): number for number, name in enumerate(WEEKDAY_NAMES)}
_BEGINNING = 3  # letters of a name that count


def celery_cron(minute: str, hour: str, day_of_month: str, month_of_year: str, day_of_week: str) -> CronFields:
    weekdays = frozenset(value % 7 for value in _values(day_of_week, 0, 6, _WEEKDAYS))
    days, named = days_that_match_both(_values(day_of_month, 1, 31), weekdays)
    return CronFields(
        minutes=_values(minute, 0, 59),
        hours=_values(hour, 0, 23),
        days=days,
        months=compact(_values(month_of_year, 1, 12, _MONTHS), 1, 12),
        weekdays=named,
    )


def _values(field: str, low: int, high: int, names: Mapping[str, int] | None = None) -> frozenset[int]:
    values: set[int] = set()
    for term in re.sub(r"\s", "", field).split(","):
        match = _TERM.fullmatch(term)
        if match is None:
            raise NotExpressible(f"{field!r} is not a valid field of a crontab")
        step = int(match[3] or 1)
        first = low if match[1] is None else _number(match[1], names or {})
        last = high if match[1] is None else _number(match[2], names or {}) if match[2] else first
        limit = 7 if high == 6 else high  # Sunday is 0 and 7
        if not (low <= first <= limit and low <= last <= limit and step):
            raise NotExpressible(f"{field!r}: values are {low} to {high}")
        span = list(range(first, last + 1)) if first <= last else [*range(first, high + 1), *range(low, last + 1)]
        values.update(span[::step])
    return frozenset(values)


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.isdecimal():
        return int(text)
    try:
        return names[text.lower()[:_BEGINNING]]
    except KeyError:
        raise NotExpressible(f"{text!r} is not valid in a crontab") from None
