"""What cron means, written a second time and as plainly as possible: no cron library, no zone arithmetic.

A field is a predicate. A wall clock is walked tick by tick, asking `zoneinfo` what it shows at each instant. The rule
for gap and fold falls out of looking at which readings were skipped and which were seen before.
"""

from __future__ import annotations

import functools
import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from tests.unit.timing.zone_files import zone_file

Reading = tuple[int, int, int, date]  # second, minute, hour, day

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTH_NAMES = ("", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * SUN",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 JAN *",
    "@annually": "0 0 1 JAN *",
}


def fields_of(text: str) -> list[str]:
    fields = MACROS.get(text, text).upper().split()
    return fields if len(fields) == 6 else ["0", *fields]


def is_fixed_time(text: str) -> bool:
    return not any(sign in field for field in fields_of(text)[:3] for sign in "*-/")


@functools.lru_cache(maxsize=1000)  # asked for each day that is walked
def numbers(term: str, low: int, high: int, names: tuple[str, ...]) -> frozenset[int]:
    """`*`, `3`, `MON`, `3-7`, `3/2`, `*/2`, `3-7/2` → the numbers meant."""
    span, _, step = term.partition("/")

    def number(text: str) -> int:
        return names.index(text) if text in names else int(text)

    if span == "*":
        first, last = low, high
    elif "-" in span:
        left, right = span.split("-")
        first, last = number(left), number(right)
    else:
        first = number(span)
        last = high if step else first
    return frozenset(n for n in range(low, high + 1) if first <= n <= last and (n - first) % int(step or 1) == 0)


@functools.lru_cache(maxsize=1000)
def last_weekday(year: int, month: int) -> int:
    days = range(1, monthrange(year, month)[1] + 1)
    return [day for day in days if date(year, month, day).isoweekday() <= 5][-1]


class Matcher(NamedTuple):
    at: Callable[[Reading], bool]
    on: Callable[[date], bool]
    """Whether it fires at any time of a day."""


@functools.lru_cache(maxsize=1000)
def matcher(text: str) -> Matcher:
    second, minute, hour, dom, month, dow = fields_of(text)
    plain = [
        frozenset[int]().union(*(numbers(term, low, high, names) for term in field.split(",")))
        for field, low, high, names in (
            (second, 0, 59, ()),
            (minute, 0, 59, ()),
            (hour, 0, 23, ()),
            (month, 1, 12, MONTH_NAMES),
        )
    ]
    both = dom.startswith("*") or dow.startswith("*")

    def day_of_month(wall: date) -> bool:
        last = monthrange(wall.year, wall.month)[1]
        for term in dom.split(","):
            if term == "L":
                hit = wall.day == last
            elif term == "LW":
                hit = wall.day == last_weekday(wall.year, wall.month)
            else:
                hit = wall.day in numbers(term, 1, 31, ())
            if hit:
                return True
        return False

    def day_of_week(wall: date) -> bool:
        last = monthrange(wall.year, wall.month)[1]
        today = {wall.isoweekday() % 7, wall.isoweekday()}  # Sunday is 0 and 7
        for term in dow.split(","):
            if match := re.fullmatch(r"(\w+?)L", term):
                hit = numbers(match[1], 0, 7, DAY_NAMES) & today and wall.day > last - 7
            elif match := re.fullmatch(r"(\w+)#(\d)", term):
                hit = numbers(match[1], 0, 7, DAY_NAMES) & today and (wall.day - 1) // 7 + 1 == int(match[2])
            else:
                hit = numbers(term, 0, 7, DAY_NAMES) & today
            if hit:
                return True
        return False

    @functools.lru_cache(maxsize=1000)
    def day_matches(day: date) -> bool:
        if day.month not in plain[3]:
            return False
        if both:
            return day_of_month(day) and day_of_week(day)
        return day_of_month(day) or day_of_week(day)

    seconds, minutes, hours, _ = plain

    def matches(wall: Reading) -> bool:
        second, minute, hour, day = wall
        return minute in minutes and second in seconds and hour in hours and day_matches(day)

    return Matcher(matches, day_matches)


def reading(wall: datetime) -> Reading:
    return wall.second, wall.minute, wall.hour, wall.date()


@functools.lru_cache(maxsize=64)
def readings(zone: str, begin: int, end: int, tick: int) -> list[tuple[int, datetime, Reading]]:
    """(instant in ms, what the wall clock shows, the same in parts) for each tick in [begin, end)."""
    found = []
    for u in range(begin, end, tick):
        wall = wall_at(zone, u)
        found.append((u, wall, reading(wall)))
    return found


@functools.lru_cache(maxsize=64)
def zone_info(zone: str) -> ZoneInfo:
    with zone_file(zone).open("rb") as file:
        return ZoneInfo.from_file(file)


def wall_at(zone: str, u: int) -> datetime:
    return (EPOCH + timedelta(milliseconds=u)).astimezone(zone_info(zone)).replace(tzinfo=None, fold=0)


@functools.lru_cache(maxsize=8192)
def newest_before(zone: str, begin: int) -> datetime:
    """The latest that the wall clock has shown, at whole minutes, in the thirty hours before. Looked at every quarter
    of an hour, and every minute where it went slower in between, and at last."""
    minute, quarter = 60_000, 15 * 60_000
    newest = wall_at(zone, begin - 120 * quarter)
    for u in range(begin - 120 * quarter, begin, quarter):
        wall, following = wall_at(zone, u), wall_at(zone, u + quarter)
        if following < wall + timedelta(minutes=15) or u + quarter == begin:
            newest = max(newest, *(wall_at(zone, each) for each in range(u, u + quarter, minute)))
        newest = max(newest, wall)
    return newest


def may_fire(text: str, begin: int) -> bool:
    """Whether there can be a slot within a day of this instant, anywhere: what is in a gap may fire on the next day."""
    day, matches = (EPOCH + timedelta(milliseconds=begin)).date(), matcher(text)
    return any(matches.on(day + timedelta(days=away)) for away in (-2, -1, 0, 1, 2))


def slots(text: str, zone: str, begin: int, end: int, tick: int = 60_000) -> list[int]:
    """All slots in [begin, end), by looking at every tick."""
    matches, fixed = matcher(text).at, is_fixed_time(text)
    if not fixed:
        return [u for u, _, parts in readings(zone, begin, end, tick) if matches(parts)]
    step = timedelta(milliseconds=tick)
    newest = newest_before(zone, begin) + timedelta(minutes=1) - step
    found = []
    for u, wall, parts in readings(zone, begin, end, tick):
        fires, expected = False, newest + step
        while expected < wall:  # the clocks skipped the readings before `wall`
            fires = fires or matches(reading(expected))
            expected += step
        if expected == wall:
            fires = fires or matches(parts)
        newest = max(newest, wall)
        if fires:
            found.append(u)
    return found
