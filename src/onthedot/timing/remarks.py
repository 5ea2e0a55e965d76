"""Notes on a schedule: daylight saving time changes, rare days, steps that restart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from onthedot.model.duration import DAY, SECOND
from onthedot.model.instant import format_instant, parse_local
from onthedot.model.schedule import Schedule
from onthedot.timing.compile import compile_schedule
from onthedot.timing.cron import CronTimetable, cron_timetable
from onthedot.timing.cron_text import uses_hash
from onthedot.timing.zones import EARLIEST, LATEST, Stretch, is_dst_change, stretch_at, wall_of

__all__ = ["remarks"]

_MOST_CHANGES = 10
_FAR = 30 * 366 * DAY  # nobody plans further ahead, and each year takes a millisecond to look at
_CYCLES = ((60, "second", "minute"), (60, "minute", "hour"), (24, "hour", "day"))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def remarks(schedule: Schedule, fires: Sequence[int], seed: str = "") -> list[str]:
    """Notes on `schedule` and on the given fires (ascending, ms). Raises Invalid like compile_schedule."""
    compile_schedule(schedule, anchor=0, seed=seed)
    fires = [t for t in fires if EARLIEST < t < LATEST]
    if schedule.cron is not None:
        cron = cron_timetable(schedule.cron, schedule.tz, seed)
        return [*_about_days(cron), *_about_steps(cron), *_about_hash(schedule.cron), *_about_clocks(cron, fires)]
    if schedule.every is not None and any(_changes(schedule.tz, fires)):
        return [f"`every` counts elapsed time, so the local time in {schedule.tz} shifts when clocks change"]
    return list(_about_at(schedule))


def _about_days(cron: CronTimetable) -> Iterator[str]:
    day, month, weekday = cron.parts[3:]
    if not (day.startswith("*") or weekday.startswith("*")):
        yield "both day-of-month and day-of-week are set: it fires when either matches"
    elif (day, month) == ("29", "2"):
        yield "fires only on February 29, in leap years"
    elif day in ("29", "30", "31") and month == "*":
        yield f"fires only in months that have a day {day}; use L for the last day of every month"


def _about_steps(cron: CronTimetable) -> Iterator[str]:
    for part, (size, name, over) in zip(cron.parts, _CYCLES, strict=False):
        match = re.fullmatch(r"\*/(\d+)", part)
        if match is not None and 1 < int(match[1]) < size and size % int(match[1]):
            yield f"{part} restarts every {over}, so its last interval is shorter than {match[1]} {name}s"


def _about_hash(text: str) -> Iterator[str]:
    if uses_hash(text):
        yield "H is a value derived from the job's key: fixed for each job, different between jobs"


def _about_clocks(cron: CronTimetable, fires: Sequence[int]) -> Iterator[str]:
    for change in _changes(cron.zone, fires):
        at, by = change.start, change.offset - change.before
        old, new = at + change.before, at + change.offset
        walls = _matches(cron, min(old, new), max(old, new))
        if not walls:
            continue
        kind = "DST" if is_dst_change(cron.zone, at) else "Zone change"
        clocks = f"{kind}: on {_date(old)} clocks in {cron.zone} go from {_clock(old, old)} to {_clock(new, old)}"
        named = ", ".join(_clock(wall, old) for wall in walls[:3]) + (" …" if len(walls) > 3 else "")
        if by > 0 and cron.fixed_time and at in fires:
            yield f"{clocks}, skipping {named}; it fires at {_clock(new, old)} instead ({format_instant(at)})"
        elif by > 0 and not cron.fixed_time and fires[0] < at <= fires[-1]:
            yield f"{clocks}, skipping {named}; it does not fire at skipped times"
        elif by < 0 and any(at + by <= t < at - by for t in fires):
            passes = "the first time only" if cron.fixed_time else "both times"
            yield f"{clocks}, repeating {named}; it fires {passes}"


def _changes(zone: str, fires: Sequence[int]) -> Iterator[Stretch]:
    """The stretches that begin with a change of the clocks, around the fires."""
    if not fires:
        return
    stretch = stretch_at(zone, max(EARLIEST, fires[0]))
    end, seen = min(fires[-1] + DAY, fires[0] + _FAR, LATEST - 1), 0
    while seen < _MOST_CHANGES:
        if stretch.before != stretch.offset and stretch.start > fires[0] - DAY:
            seen += 1
            yield stretch
        if stretch.end > end:
            return
        stretch = stretch_at(zone, stretch.end)


def _matches(cron: CronTimetable, low: int, high: int) -> list[int]:
    """The first walls (ms) in [low, high) that match, at most four."""
    found: list[int] = []
    wall = cron.walls.at_or_after(low // SECOND, high // SECOND)
    while wall is not None and len(found) < 4:
        found.append(wall * SECOND)
        wall = cron.walls.at_or_after(wall + 1, high // SECOND)
    return found


def _about_at(schedule: Schedule) -> Iterator[str]:
    local, has_offset = parse_local(schedule.at or "")
    if local is None or has_offset:
        return
    slot = compile_schedule(schedule, anchor=0).next_after(EARLIEST)
    if slot is None:
        return
    wall, stretch = wall_of(local), stretch_at(schedule.tz, slot)
    if slot + stretch.offset != wall:
        shown = _clock(slot + stretch.offset, wall)
        yield f"{_clock(wall, 0)} does not exist in {schedule.tz}: it fires at {shown}, the next valid time"
    elif wall >= stretch.end + stretch_at(schedule.tz, stretch.end).offset:
        yield f"{_clock(wall, 0)} occurs twice in {schedule.tz}: it fires the first time"


def _date(wall: int) -> str:
    return (_EPOCH + timedelta(milliseconds=wall)).strftime("%Y-%m-%d")


def _clock(wall: int, day_of: int) -> str:
    """ "02:30"; with its date if that is another day than `day_of`'s, with seconds if there are any."""
    moment = _EPOCH + timedelta(milliseconds=wall)
    clock = moment.strftime("%H:%M:%S" if moment.second else "%H:%M")
    return clock if wall // DAY == day_of // DAY else f"{moment:%Y-%m-%d} {clock}"
