"""A job by days as a map of weeks: what its runs became, and what is planned. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import msgspec

from onthedot.model.slots import CalendarDay

__all__ = ["AHEAD_WEEKS", "PAST_WEEKS", "HeatCell", "HeatMap", "first_and_last", "heat_map"]

PAST_WEEKS, AHEAD_WEEKS = 8, 3
LEVELS = 4
_TOLD = ("done", "failed", "cancelled", "skipped", "running", "planned")


class HeatCell(msgspec.Struct, frozen=True, kw_only=True):
    """`tone` and `level` (1 to 4) are its colour; `words` say the same."""

    date: str
    tone: str
    level: int
    words: str
    today: bool


class HeatMap(msgspec.Struct, frozen=True, kw_only=True):
    """`rows`: Monday to Sunday, each with a cell (or None) for every week; `months`: (weeks, name) over the columns."""

    rows: list[tuple[str, list[HeatCell | None]]]
    months: list[tuple[int, str]]
    totals: list[tuple[str, int]]


def first_and_last(today: date) -> tuple[date, date]:
    """Whole weeks, from a Monday to a Sunday."""
    monday = today - timedelta(days=today.weekday())
    return monday - timedelta(weeks=PAST_WEEKS), monday + timedelta(weeks=AHEAD_WEEKS + 1) - timedelta(days=1)


def heat_map(days: Sequence[CalendarDay], today: date) -> HeatMap:
    first, last = first_and_last(today)
    found = {day.date: day for day in days}
    weeks = [first + timedelta(weeks=week) for week in range(((last - first).days + 1) // 7)]
    most = max((_weight(day) for day in days), default=0)
    rows = []
    for weekday, name in enumerate(("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")):
        dates = [week + timedelta(days=weekday) for week in weeks]
        rows.append((name, [_cell(found.get(each.isoformat()), each, today, most) for each in dates]))
    totals = [(name, sum(getattr(day, name) for day in days)) for name in _TOLD]
    return HeatMap(rows=rows, months=_months(weeks), totals=[each for each in totals if each[1]])


def _weight(day: CalendarDay) -> int:
    return sum(getattr(day, name) for name in _TOLD)


def _cell(day: CalendarDay | None, at: date, today: date, most: int) -> HeatCell | None:
    if day is None:
        return None
    weight = _weight(day)
    level = 0 if not weight else max(1, -(-LEVELS * weight // most))
    counts = [f"{getattr(day, name):,} {name}" for name in _TOLD if getattr(day, name)]
    told = ", ".join(counts) or "nothing was due"
    return HeatCell(
        date=day.date, tone=_tone(day), level=level, words=f"{at:%a} {at.day} {at:%b}: {told}", today=at == today
    )


def _tone(day: CalendarDay) -> str:
    if day.failed:
        return "bad" if day.failed >= day.done else "some"
    if day.done or day.running:
        return "good"
    if day.skipped or day.cancelled:
        return "warn"
    return "plan" if day.planned else "none"


def _months(weeks: Sequence[date]) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for week in weeks:
        name = f"{week:%b}"
        if found and found[-1][1] == name:
            found[-1] = (found[-1][0] + 1, name)
        else:
            found.append((1, name))
    return found
