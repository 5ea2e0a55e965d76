"""The slots of a schedule in an interval, by enumerating days, hours, minutes and seconds.

cronsim reads the fields and says whether a day matches; all else is here. For daylight saving time: an expression whose
second, minute and hour are only numbers and lists is fixed-time. Where clocks jump ahead it fires once at the first
instant after the gap, where they go back on the first pass only. Any other expression fires at every instant whose
local time matches.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

__all__ = ["CannotTell", "ScheduleFacts", "slots_between"]

_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FROM_TO = ((0, 59), (0, 59), (0, 23), (1, 28), (1, 12), (0, 6))  # what a hashed value is taken from
_HASHED = re.compile(r"H(?:\((\d+)-(\d+)\))?(?:/(\d+))?")
_ONE_VALUE = re.compile(r"(\d+)-\1/\d+")  # "5-5/2", which cronsim reads as "5/2"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  # local times are compared with local times
_DAY = 86_400
_MOST_KEPT = 128


class CannotTell(Exception):
    """This module does not know what the schedule means."""


class ScheduleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What of a job says when it fires. Times in ms."""

    cron: str | None = None
    every: int | None = None
    at: str | None = None
    delay: int | None = None
    tz: str = "UTC"
    start: str | None = None
    end: str | None = None
    anchor: int = 0
    seed: str = ""


def slots_between(facts: ScheduleFacts, since: int, until: int) -> list[int]:
    """All slots at or after `since` and before `until`, in order."""
    zone = _zone(facts.tz)
    start = None if facts.start is None else _instant(facts.start, zone, last=False)
    end = None if facts.end is None else _instant(facts.end, zone, last=True)
    low = since if start is None else max(since, start)
    high = until if end is None else min(until, end + 1)
    if facts.cron is not None:
        slots = _of_cron(facts.cron, facts.tz, facts.seed if "H" in facts.cron.upper() else "", since, until)
        return slots if (low, high) == (since, until) else [slot for slot in slots if low <= slot < high]
    if facts.every is not None:
        first = facts.anchor + facts.every if start is None else start
        steps = max(0, -(-(low - first) // facts.every))
        return list(range(first + steps * facts.every, high, facts.every))
    if facts.at is not None:
        slot = _instant(facts.at, zone, last=False)
    elif facts.delay is not None:
        slot = facts.anchor + facts.delay
    else:
        raise CannotTell("unknown kind of schedule")
    return [slot] if low <= slot < high else []


@lru_cache(maxsize=_MOST_KEPT)
def _of_cron(text: str, tz: str, seed: str, since: int, until: int) -> list[int]:
    """Many jobs share one expression, and a round asks for one interval."""
    fields = _fields(text, seed)
    try:
        cron = CronSim(" ".join(fields), datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise CannotTell(str(error)) from None
    fixed = all(re.fullmatch(r"[\d,]+", field) for field in fields[:3])
    zone, found = _zone(tz), set[int]()
    day = datetime.fromtimestamp(since // 1000 - 2 * _DAY, UTC).date()
    last = datetime.fromtimestamp(until // 1000 + 2 * _DAY, UTC).date()
    while day <= last:
        if day.month in cron.months and cron.match_day(day):
            for slot in _of_day(cron, day, zone, fixed, since // 1000 - 1, until // 1000 + 1):
                if since <= slot * 1000 < until:
                    found.add(slot * 1000)
        day += timedelta(days=1)
    return sorted(found)


def _of_day(cron: CronSim, day: date, zone: ZoneInfo, fixed: bool, low: int, high: int) -> Iterator[int]:
    """In seconds, with those outside low … high left out where that is easy."""
    midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001
    begins = (midnight - _EPOCH) // timedelta(seconds=1)
    offsets = {offset for edge in (midnight, midnight + timedelta(days=1)) for offset in _offsets(edge, zone)}
    minutes, seconds = sorted(cron.minutes), sorted(cron.seconds)
    if len(offsets) == 1:  # clocks don't change on this day
        (offset,) = offsets
        for hour in sorted(cron.hours):
            at = begins + hour * 3600 - offset
            if at + 3600 > low and at <= high:
                yield from (at + minute * 60 + second for minute in minutes for second in seconds)
        return
    for hour in sorted(cron.hours):
        wall = begins + hour * 3600
        if wall + 3600 - min(offsets) <= low or wall - max(offsets) > high:
            continue  # by neither rule: a job of every second has 86,400 local times on this day
        for minute in minutes:
            for second in seconds:
                yield from _instants(midnight.replace(hour=hour, minute=minute, second=second), zone, fixed)


def _instants(wall: datetime, zone: ZoneInfo, fixed: bool) -> list[int]:
    seconds = (wall - _EPOCH) // timedelta(seconds=1)
    first, second = _offsets(wall, zone)
    if first == second:
        return [seconds - first]
    if first > second:  # clocks go back: this local time comes twice
        return [seconds - first] if fixed else [seconds - first, seconds - second]
    return [_change(zone, seconds - second, seconds - first)] if fixed else []


def _change(zone: ZoneInfo, before: int, after: int) -> int:
    """The second at which clocks jump ahead, between two instants."""
    old = datetime.fromtimestamp(before, zone).utcoffset()
    while after - before > 1:
        middle = (before + after) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after


def _offsets(wall: datetime, zone: ZoneInfo) -> tuple[int, int]:
    """What is to be taken off this local time, by the rule before and after a change of clocks."""
    first, second = (wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    if first is None or second is None:
        raise CannotTell("a time zone without offsets")
    return first // timedelta(seconds=1), second // timedelta(seconds=1)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except Exception:
        raise CannotTell(f"unknown time zone {name}") from None


def _instant(text: str, zone: ZoneInfo, *, last: bool) -> int:
    """ms since the epoch. Without an offset it is local time; a date alone its first ms, or its `last`."""
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise CannotTell(f"not a time: {text[:100]}") from None
    if given.tzinfo is not None:
        return round(given.timestamp() * 1000)
    whole_day = last and len(text) == len("2026-12-31")
    wall = given + timedelta(days=1) if whole_day else given
    (second,) = _instants(wall.replace(microsecond=0), zone, fixed=True)
    return second * 1000 + wall.microsecond // 1000 - whole_day


def _fields(text: str, seed: str) -> list[str]:
    """Six fields that cronsim reads."""
    fields = _MACROS.get(text.strip().lower(), text).upper().replace("?", "*").split()
    if len(fields) == 5:
        fields.insert(0, "0")
    if len(fields) != 6:
        raise CannotTell(f"not a cron expression: {text[:100]}")
    fields[5] = re.sub(r"-SUN\b", "-7", fields[5])
    plain = []
    for place, field in enumerate(fields):
        terms = (_term(term, place, seed) for term in field.split(","))
        plain.append(",".join(_ONE_VALUE.sub(r"\1-\1", term) for term in terms))
    return plain


def _term(term: str, place: int, seed: str) -> str:
    match = _HASHED.fullmatch(term)
    if match is None:
        return term
    low, high = _FROM_TO[place] if match[1] is None else (int(match[1]), int(match[2]))
    size = high - low + 1 if match[3] is None else min(int(match[3]), high - low + 1)
    digest = hashlib.sha256(f"{place}:{seed}".encode(errors="surrogatepass")).digest()
    value = low + int.from_bytes(digest[:8], "big") % size
    return str(value) if match[3] is None else f"{value}-{high}/{match[3]}"
