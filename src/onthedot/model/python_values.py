"""Python's own dates, durations and zones, written as JSON has them, for programs that make jobs in code."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from onthedot.errors import Invalid

__all__ = ["from_python"]

_MS = timedelta(milliseconds=1)


def from_python(path: str, value: Any, *, zoned: bool = False) -> Any:
    """`value` with each datetime, timedelta and ZoneInfo in it as text. `zoned`: the schedule names its time zone, in
    which a datetime without one is read; otherwise it is the machine's local time, as everywhere in Python."""
    match value:
        case timedelta():
            return _duration(path, value)
        case datetime():
            return _instant(value, zoned=zoned)
        case date():
            return value.isoformat()
        case ZoneInfo():
            return value.key
        case tzinfo():
            if value is UTC:
                return "UTC"
            raise Invalid.one(path, "not a named time zone", given=str(value), accepted="zoneinfo.ZoneInfo or its name")
        case Mapping():
            return {name: from_python(f"{path}.{name}", each, zoned=zoned) for name, each in value.items()}
        case _:
            return value


def _duration(path: str, value: timedelta) -> str:
    if value < timedelta(0):
        raise Invalid.one(path, "a duration can't be negative", given=str(value))
    whole, rest = divmod(value, _MS)
    if rest:
        raise Invalid.one(path, "a duration is a whole number of milliseconds", given=str(value))
    return f"{whole}ms"


def _instant(value: datetime, *, zoned: bool) -> str:
    if value.tzinfo is None:
        if zoned:
            return value.isoformat()
        value = value.astimezone()
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
