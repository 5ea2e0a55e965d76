"""Cron expressions from sets of numbers, for sources whose fields mean something else than ours."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

__all__ = ["MONTH_NAMES", "WEEKDAY_NAMES", "CronFields", "NotExpressible", "compact", "days_that_match_both", "listed"]

MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_BLOCKS = tuple(frozenset(range(first, min(first + 7, 32))) for first in range(1, 32, 7))
"""Days 1-7 are the first of their weekday in a month, days 8-14 the second …"""


class NotExpressible(Exception):
    """No cron expression means the same. The message says why."""


class CronFields(msgspec.Struct, frozen=True, kw_only=True):
    """An expression whose time of day is known as sets, and whose days are already written."""

    seconds: frozenset[int] = frozenset({0})
    minutes: frozenset[int]
    hours: frozenset[int]
    days: str = "*"
    months: str = "*"
    weekdays: str = "*"

    def texts(self) -> Iterator[str]:
        """The ways to write it. They differ only in what happens when clocks change: with numbers and lists alone, a
        time that is skipped fires right after the gap, and one that is repeated fires once; with a range or a step,
        it fires whenever the clocks show a time that matches."""
        short = [compact(self.seconds, 0, 59), compact(self.minutes, 0, 59), compact(self.hours, 0, 23)]
        yield self._text(short)
        yield self._text([listed(self.seconds), listed(self.minutes), listed(self.hours)])
        if all("*" not in field and "-" not in field for field in short):
            first = short[1].split(",")[0]
            short[1] = ",".join([f"{first}-{first}", *short[1].split(",")[1:]])
            yield self._text(short)

    def _text(self, time: list[str]) -> str:
        fields = time[1:] if time[0] == "0" else time
        return " ".join((*fields, self.days, self.months, self.weekdays))


def compact(values: Collection[int], low: int, high: int) -> str:
    """`*`, `*/15`, `9-17` or `1,7`."""
    if not values:
        raise NotExpressible("a field matches nothing")
    found = sorted(values)
    if found == list(range(low, high + 1)):
        return "*"
    if len(found) > 2:
        step = found[1] - found[0]
        if found == list(range(low, high + 1, step)):
            return f"*/{step}"
        if found == list(range(found[0], found[-1] + 1)):
            return f"{found[0]}-{found[-1]}"
    return listed(found)


def listed(values: Collection[int]) -> str:
    if not values:
        raise NotExpressible("a field matches nothing")
    return ",".join(map(str, sorted(values)))


def days_that_match_both(days: frozenset[int], weekdays: frozenset[int]) -> tuple[str, str]:
    """The fields day-of-month and day-of-week (0 is Sunday) for days that match both. If neither field begins with `*`,
    cron takes days that match either, so one of them must be written with a `*`."""
    if len(days) == 31 or len(weekdays) == 7:
        return compact(days, 1, 31), compact(weekdays, 0, 6)
    blocks = [number for number, block in enumerate(_BLOCKS, 1) if block <= days]
    if frozenset().union(*(_BLOCKS[number - 1] for number in blocks)) == days:
        return "*", ",".join(f"{weekday}#{number}" for weekday in sorted(weekdays) for number in blocks)
    if 1 in days:
        text = compact(days, 1, 31)
        return (text if text.startswith("*") else ",".join(("*/31", listed(days)))), listed(weekdays)
    if 0 in weekdays:
        return listed(days), ",".join(("*/7", *map(str, sorted(weekdays - {0}))))
    raise NotExpressible(
        f"days {compact(days, 1, 31)} of the month that are also weekdays {listed(weekdays)} (0 is Sunday): a cron "
        "expression with both fires on days that match either"
    )
