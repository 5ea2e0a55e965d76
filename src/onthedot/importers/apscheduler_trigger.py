"""Triggers of APScheduler 3 as schedules. They are read by their attributes, and asked for their own firings."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from onthedot.importers.clock_changes import NextFiring, fit_cron
from onthedot.importers.cron_sets import CronFields, NotExpressible, compact, days_that_match_both
from onthedot.model.instant import format_instant
from onthedot.timing.zones import is_zone

__all__ = ["FittedTrigger", "schedules_of"]

_RANGES = {
    "year": (1970, 9999), "month": (1, 12), "day": (1, 31), "week": (1, 53), "day_of_week": (0, 6),
    "hour": (0, 23), "minute": (0, 59), "second": (0, 59),
}  # fmt: skip
_SPECIAL = ("WeekdayPositionExpression", "LastDayOfMonthExpression")


class FittedTrigger(msgspec.Struct, frozen=True, kw_only=True):
    schedule: dict[str, Any]
    differences: list[str] = []
    jitter: float | None = None


def schedules_of(trigger: Any, *, now: int, lost: list[tuple[str, str]]) -> Iterator[FittedTrigger]:
    """One schedule, or several for an OrTrigger. Raises NotExpressible."""
    match type(trigger).__name__:
        case "DateTrigger":
            yield FittedTrigger(schedule={"at": _written(trigger.run_date)})
        case "IntervalTrigger":
            yield _interval(trigger)
        case "CronTrigger":
            yield _cron(trigger, now)
        case "OrTrigger":
            lost.append(("OrTrigger", "one job for each of its triggers: where they coincide, both fire"))
            for each in trigger.triggers:
                yield from schedules_of(each, now=now, lost=lost)
        case other:
            raise NotExpressible(f"trigger {other}: only date, interval, cron and OrTrigger can be carried over")


def _written(at: datetime) -> str:
    return format_instant(_ms(at))


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _interval(trigger: Any) -> FittedTrigger:
    step: timedelta = trigger.interval
    ms = step // timedelta(milliseconds=1)
    if timedelta(milliseconds=ms) != step:
        raise NotExpressible(f"an interval of {step}: intervals are whole milliseconds")
    schedule: dict[str, Any] = {"every": f"{ms // 1000}s" if ms % 1000 == 0 else f"{ms}ms"}
    schedule |= _bounds(trigger)
    return FittedTrigger(schedule=schedule, jitter=trigger.jitter)


def _bounds(trigger: Any) -> dict[str, str]:
    bounds = {}
    if trigger.start_date is not None:
        bounds["start"] = _written(trigger.start_date)
    if trigger.end_date is not None:
        bounds["end"] = _written(trigger.end_date)
    return bounds


def _cron(trigger: Any, now: int) -> FittedTrigger:
    tz = str(getattr(trigger.timezone, "key", None) or getattr(trigger.timezone, "zone", None) or trigger.timezone)
    if not is_zone(tz):
        raise NotExpressible(f"time zone {tz!r} is not an IANA name")
    fields = {field.name: field for field in trigger.fields}
    for name in ("year", "week"):
        if str(fields[name]) != "*":
            raise NotExpressible(f"{name}={fields[name]}: not a field of a cron expression")
    days, weekdays = _days(fields["day"], fields["day_of_week"])
    written = CronFields(
        seconds=_values(fields["second"]),
        minutes=_values(fields["minute"]),
        hours=_values(fields["hour"]),
        days=days,
        months=compact(_values(fields["month"]), 1, 12),
        weekdays=weekdays,
    )
    fitted = fit_cron(written.texts(), tz, _firings(trigger), now=now)
    schedule = {"cron": fitted.cron, "tz": tz, **_bounds(trigger)}
    return FittedTrigger(schedule=schedule, differences=fitted.differences, jitter=trigger.jitter)


def _firings(trigger: Any) -> NextFiring:
    """Its own times, without the random part, its beginning and its end."""
    own = copy.copy(trigger)
    own.jitter = own.start_date = own.end_date = None

    def following(after: int) -> int | None:
        at = datetime.fromtimestamp(after / 1000, UTC).astimezone(own.timezone)
        slot = own.get_next_fire_time(at, at)
        while slot is not None and _ms(slot) <= after:  # asked at a time of its own, it may give the same one
            at += timedelta(seconds=1)
            slot = own.get_next_fire_time(None, at)
        return None if slot is None else _ms(slot)

    return following


def _values(field: Any) -> frozenset[int]:
    low, high = _RANGES[field.name]
    values: set[int] = set()
    for expression in field.expressions:
        first, last = (getattr(expression, name, None) for name in ("first", "last"))
        first = low if first is None else first
        last = high if last is None else last
        values |= set(range(first, last + 1, expression.step or 1))
    return frozenset(values)


def _days(day: Any, weekday: Any) -> tuple[str, str]:
    """Days must match both fields there."""
    special = [expression for expression in day.expressions if type(expression).__name__ in _SPECIAL]
    if not special:
        weekdays = frozenset((value + 1) % 7 for value in _values(weekday))
        return days_that_match_both(_values(day), weekdays)
    if str(weekday) != "*" or len(special) != len(day.expressions):
        raise NotExpressible(f"day={day} with day_of_week={weekday}: a cron expression can't have both")
    if str(day) == "last":
        return "L", "*"
    if any(str(each) == "last" for each in special):
        raise NotExpressible(f"day={day}: a cron expression can't have both")
    return "*", ",".join(_nth_weekday(each) for each in special)


def _nth_weekday(expression: Any) -> str:
    """`2nd fri`, `last mon`."""
    weekday = (expression.weekday + 1) % 7
    number = expression.option_num
    return f"{weekday}L" if number == 5 else f"{weekday}#{number + 1}"
