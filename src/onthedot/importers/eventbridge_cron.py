"""Cron expressions of Amazon EventBridge: minutes, hours, day of the month, month, day of the week, year.

Weekdays are 1 to 7 from Sunday on, one of the two days is `?`, and there is a year. When clocks change, a time that is
skipped does not fire, and a time that is repeated fires once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from onthedot.importers.clock_changes import NextFiring, next_of
from onthedot.importers.cron_sets import MONTH_NAMES, WEEKDAY_NAMES, CronFields, NotExpressible, compact

__all__ = ["EventBridgeCron", "read_eventbridge_cron"]

_MONTHS = {name: number for number, name in enumerate(MONTH_NAMES, 1)}
_WEEKDAYS = {name: number for number, name in enumerate(WEEKDAY_NAMES, 1)}
_TERM = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/(\d+))?")
_NTH = re.compile(r"(\w+)#([1-5])")
_LAST = re.compile(r"(\w+)L")
YEARS = (1970, 2199)
HOURS = 24


class EventBridgeCron(msgspec.Struct, frozen=True, kw_only=True):
    fields: CronFields
    years: tuple[int, int] | None = None  # first and last; None: all

    def expected(self, tz: str) -> NextFiring:
        """Its own firings. Which of our texts skips a gap and which repeats a fold is known; here it is neither."""
        texts = list(self.fields.texts())
        if len(self.fields.hours) == HOURS:
            return next_of(texts[0], tz)
        once, whenever = next_of(texts[1], tz), next_of(texts[-1] if len(texts) > 2 else texts[0], tz)

        def following(after: int) -> int | None:
            slot = once(after)
            while slot is not None and whenever(slot - 1) != slot:  # a time that the clocks did not show
                slot = once(slot)
            return slot

        return following


def read_eventbridge_cron(text: str) -> EventBridgeCron:
    fields = text.upper().split()
    if len(fields) != 6:
        raise NotExpressible(f"cron({text}): expected 6 fields, found {len(fields)}")
    minutes, hours, days, months, weekdays, years = fields
    if (days == "?") == (weekdays == "?") and not (days == "*" or weekdays == "*"):
        raise NotExpressible(f"cron({text}): exactly one of day-of-month and day-of-week must be ?")
    return EventBridgeCron(
        fields=CronFields(
            minutes=_values(minutes, 0, 59),
            hours=_values(hours, 0, 23),
            days=_days(days),
            months=compact(_values(months, 1, 12, _MONTHS), 1, 12),
            weekdays=_weekdays(weekdays),
        ),
        years=_years(years),
    )


def _days(field: str) -> str:
    if field in ("?", "*"):
        return "*"
    if field in ("L", "LW"):
        return field
    if "W" in field or "L" in field:
        raise NotExpressible(f"day {field}: the nearest weekday to a day, or days before the last one")
    return compact(_values(field, 1, 31), 1, 31)


def _weekdays(field: str) -> str:
    """1 is Sunday there; here it is 0."""
    if field in ("?", "*"):
        return "*"
    if field == "L":
        return "6"
    if (match := _NTH.fullmatch(field)) is not None:
        return f"{_number(match[1], _WEEKDAYS) - 1}#{match[2]}"
    if (match := _LAST.fullmatch(field)) is not None:
        return f"{_number(match[1], _WEEKDAYS) - 1}L"
    return compact({number - 1 for number in _values(field, 1, 7, _WEEKDAYS)}, 0, 6)


def _years(field: str) -> tuple[int, int] | None:
    years = sorted(_values(field, *YEARS))
    if len(years) == YEARS[1] - YEARS[0] + 1:
        return None
    if years != list(range(years[0], years[-1] + 1)):
        raise NotExpressible(f"years {field}: only a range of years can be carried over")
    return years[0], years[-1]


def _values(field: str, low: int, high: int, names: Mapping[str, int] | None = None) -> frozenset[int]:
    values: set[int] = set()
    for term in field.split(","):
        match = _TERM.fullmatch(term)
        if match is None:
            raise NotExpressible(f"field {field!r} is not valid")
        first = low if match[1] is None else _number(match[1], names or {})
        last = _number(match[2], names or {}) if match[2] else high if match[1] is None or match[3] else first
        step = int(match[3] or 1)
        if not (low <= first <= high and low <= last <= high and step):
            raise NotExpressible(f"field {field!r} is not valid: values are {low} to {high}")
        span = range(first, last + 1) if first <= last else (*range(first, high + 1), *range(low, last + 1))
        values.update(span[::step])
    return frozenset(values)


def _number(text: str, names: Mapping[str, int]) -> int:
    if text.isdecimal():
        return int(text)
    if text not in names:
        raise NotExpressible(f"{text!r} is not valid")
    return names[text]
