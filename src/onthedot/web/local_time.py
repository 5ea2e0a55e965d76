"""Wall clocks of a job: its firings in its own zone, and times that a person types there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from onthedot.errors import Invalid
from onthedot.model.instant import format_instant, parse_local, parse_rfc3339
from onthedot.timing.zones import from_local, zone

__all__ = ["FireTime", "fire_times", "in_zone", "read_instant"]


class FireTime(msgspec.Struct, frozen=True, kw_only=True):
    """`local` is the wall clock in the zone of the job; `mark` tells that its offset changed before this one."""

    at: str
    local: str
    mark: str


def fire_times(fires: Sequence[str], tz: str) -> list[FireTime]:
    found: list[FireTime] = []
    before: datetime | None = None
    for fire in fires:
        local = datetime.fromisoformat(fire).astimezone(zone(tz))
        changed = before is not None and local.utcoffset() != before.utcoffset()
        mark = f"clock change: now {local:%Z} (UTC{_offset(local)})" if changed else ""
        found.append(FireTime(at=fire, local=f"{local:%a %Y-%m-%d %H:%M:%S}", mark=mark))
        before = local
    return found


def _offset(local: datetime) -> str:
    text = f"{local:%z}"
    return f"{text[:3]}:{text[3:5]}"


def in_zone(at: str, tz: str) -> str:
    """As a field of type datetime-local has it."""
    return f"{datetime.fromisoformat(at).astimezone(zone(tz)):%Y-%m-%dT%H:%M:%S}"


def read_instant(name: str, text: str, tz: str) -> str:
    """RFC 3339 of what was typed: a wall clock in the zone of the job, or an instant with its offset."""
    ms = parse_rfc3339(text)
    if ms is None:
        local, has_offset = parse_local(text)
        ms = None if local is None or has_offset else from_local(tz, local)
    if ms is None:
        accepted = f"a date and time in {tz} such as 2026-03-28 03:00, or with an offset"
        raise Invalid.one(name, "not a valid time", given=text[:200], accepted=accepted)
    return format_instant(ms)
