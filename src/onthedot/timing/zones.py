"""Time zones: which names exist, and when a zone's clocks read what.

`zoneinfo` answers "which offset at this instant" but not "when does it change next", which is what gap and fold are
made of. So each zone's year is cut once into stretches of constant offset, by probing every three days and bisecting
between probes that differ (0.4 ms a zone and year, cached). No zone ever changed twice within three days; a test reads
that from the zone files.

The rules are those of the `tzdata` package, which is pinned with the others, and not those of the system, which Python
would read first: nodes on different systems must agree on when a job is due. Who sets PYTHONTZPATH decides for
themselves.
"""

from __future__ import annotations

import difflib
import errno
import os
import zoneinfo
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from importlib import import_module, resources
from typing import NamedTuple

from onthedot.errors import NoRoom
from onthedot.model.duration import DAY, SECOND

__all__ = [
    "EARLIEST",
    "LATEST",
    "Stretch",
    "close_names",
    "from_local",
    "is_dst_change",
    "is_zone",
    "stretch_at",
    "wall_of",
    "zone",
    "zone_data",
    "zone_names",
]

_LACKS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_PROBE = 3 * DAY
_NOT_NAMES = frozenset({"localtime", "Factory", "posixrules"})
"""Listed by some systems, but another thing on each machine, or no place at all."""

EARLIEST = (datetime(2, 1, 1, tzinfo=UTC) - _EPOCH) // _MS
LATEST = (datetime(9998, 12, 31, tzinfo=UTC) - _EPOCH) // _MS
"""The instants On the Dot computes with: a year inside what `datetime` holds, so that no zone's offset overflows it."""


class Stretch(NamedTuple):
    """In [start, end) the zone's clocks are `offset` ahead of UTC; just before `start` they were `before`. All ms."""

    start: int
    end: int
    offset: int
    before: int


@cache
def zone(name: str) -> zoneinfo.ZoneInfo:
    with _room_for(f"the time zone {name}"):
        return _read(name)


@contextmanager
def _room_for(what: str) -> Iterator[None]:
    """NoRoom where there is no descriptor left to read it: that says nothing about a schedule that names a zone."""
    try:
        yield
    except OSError as error:
        if error.errno in _LACKS:
            raise NoRoom(f"can't load {what}: {error.strerror}") from None
        raise


def _read(name: str) -> zoneinfo.ZoneInfo:
    if _operators():
        return zoneinfo.ZoneInfo(name)
    with resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as file:
        return zoneinfo.ZoneInfo.from_file(file, key=name)


def zone_data() -> str:
    """The version of the time zone data, or the path in PYTHONTZPATH."""
    return os.environ["PYTHONTZPATH"] if _operators() else str(import_module("tzdata").IANA_VERSION)


@cache
def zone_names() -> frozenset[str]:
    """All that a schedule may name."""
    with _room_for("the list of time zones"):
        if _operators():
            return frozenset(zoneinfo.available_timezones() - _NOT_NAMES)
        return frozenset(resources.files("tzdata").joinpath("zones").read_text("ascii").split()) - _NOT_NAMES


def _operators() -> bool:
    return bool(os.environ.get("PYTHONTZPATH"))


def is_zone(name: str) -> bool:
    """Is this an IANA name, exactly as written? (`ZoneInfo` alone would open paths and, on some disks, any case.)"""
    return name in zone_names()


def close_names(name: str) -> list[str]:
    """Names that the writer may have meant, best first."""
    folded = {known.casefold(): known for known in sorted(zone_names())}
    wanted = name[:60].strip().casefold().replace(" ", "_")
    close = [folded[match] for match in difflib.get_close_matches(wanted, folded, n=3, cutoff=0.6)]
    cities = [known for lower, known in folded.items() if wanted and lower.rpartition("/")[2] == wanted]
    same = [folded[wanted]] if wanted in folded else []
    return list(dict.fromkeys(same + cities + close))[:3]


@lru_cache(maxsize=8192)
def _stretches(name: str, year: int) -> tuple[Stretch, ...]:
    """The stretches of one UTC year. The first begins at New Year whether the clocks changed there or not."""
    info = zone(name)
    begin, end = (_year_start(y) for y in (year, year + 1))
    found, before = [], _offset(info, begin - SECOND)
    start, offset = begin, _offset(info, begin)
    probe = begin
    while probe < end:
        ahead = min(probe + _PROBE, end)
        if _offset(info, ahead) == offset:
            probe = ahead
            continue
        same, differs = probe, ahead
        while differs - same > SECOND:
            middle = (same + differs) // (2 * SECOND) * SECOND
            same, differs = (middle, differs) if _offset(info, middle) == offset else (same, middle)
        if differs >= end:
            break
        found.append(Stretch(start, differs, offset, before))
        before, start, offset = offset, differs, _offset(info, differs)
        probe = differs
    return (*found, Stretch(start, end, offset, before))


def _year_start(year: int) -> int:
    return (datetime(year, 1, 1, tzinfo=UTC) - _EPOCH) // _MS


def _offset(info: zoneinfo.ZoneInfo, t: int) -> int:
    shift = (_EPOCH + timedelta(milliseconds=t)).astimezone(info).utcoffset()
    assert shift is not None  # a ZoneInfo always knows
    return shift // _MS


def stretch_at(name: str, t: int) -> Stretch:
    """The stretch that the instant `t` lies in. `t` is between EARLIEST and LATEST."""
    year = (_EPOCH + timedelta(milliseconds=t)).year
    return next(stretch for stretch in _stretches(name, year) if t < stretch.end)


def is_dst_change(name: str, t: int) -> bool:
    """Did daylight saving time begin or end at `t`? (Else the zone itself moved, as Apia's over the date line.)"""
    info = zone(name)
    before, after = ((_EPOCH + timedelta(milliseconds=u)).astimezone(info).dst() for u in (t - SECOND, t))
    return before != after


def wall_of(local: datetime) -> int:
    """A naive local time as ms since 1970-01-01 00:00 on that same wall clock."""
    return (local.replace(tzinfo=UTC) - _EPOCH) // _MS


def from_local(name: str, local: datetime) -> int | None:
    """The instant of a naive local time: in a gap the first valid one after it, in a fold the first pass.

    None if it is outside EARLIEST to LATEST.
    """
    wall = wall_of(local)
    if not EARLIEST + 2 * DAY <= wall <= LATEST - 2 * DAY:
        return None
    stretch = stretch_at(name, wall - 2 * DAY)
    while wall >= stretch.end + stretch.offset:
        stretch = stretch_at(name, stretch.end)
    return max(stretch.start, wall - stretch.offset)
