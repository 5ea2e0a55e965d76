"""A schedule as written → a timetable."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache

from onthedot.errors import FieldProblem, Invalid, NotAvailable
from onthedot.model.field_errors import brief
from onthedot.model.instant import parse_local, parse_rfc3339
from onthedot.model.schedule import SCHEDULE_KINDS, Schedule
from onthedot.timing.cron import cron_timetable
from onthedot.timing.timetable import Bounded, Every, Once, Timetable
from onthedot.timing.zones import EARLIEST, LATEST, close_names, from_local, is_zone

__all__ = [
    "ACCEPTED_TIMES",
    "compile_schedule",
    "plain_delay",
    "read_time",
    "refuse_unknown_zone",
    "shape_problems",
]

ACCEPTED_TIMES = 'RFC 3339 such as "2026-03-29T02:30:00Z", or local time without an offset, read in `tz`'


def compile_schedule(schedule: Schedule, *, anchor: int, seed: str = "") -> Timetable:
    """What `schedule` means for a job whose schedule was given at `anchor`.

    `in` is anchor + in. `every` counts from `start` (itself a slot), or from the anchor (the first slot is one step
    later). `start` and `end` are both inside, a date alone as `end` with its whole day. The seed (the job's key or id)
    decides what `H` stands for. Raises Invalid. The costly part, cron, is cached for all jobs that say the same.
    """
    problems = shape_problems(schedule)
    if problems:
        raise Invalid(problems)
    refuse_unknown_zone(schedule.tz)
    start = read_time("schedule.start", schedule.start, schedule.tz)
    end = read_time("schedule.end", schedule.end, schedule.tz, whole_day=True)
    inner = _inner(schedule, anchor, seed, start)
    if start is None and end is None:
        return inner
    return Bounded(inner, EARLIEST if start is None else start, LATEST if end is None else end)


def plain_delay(schedule: Schedule, anchor: int) -> int | None:
    """The one slot of a schedule that says `in` and nothing that could move or forbid it; None: compile it.

    Most jobs that come by the thousand are such: 0.3 µs instead of 3 at each of the two places that ask.
    """
    if schedule.in_ is None or schedule.exclude is not None:  # a list: such a schedule has no hash
        return None
    slot = anchor + schedule.in_
    return slot if _is_plain(schedule) and EARLIEST <= slot < LATEST else None


@lru_cache(maxsize=1024)
def _is_plain(schedule: Schedule) -> bool:
    bounded = schedule.start is not None or schedule.end is not None
    alone = all(value is None for value in (schedule.cron, schedule.every, schedule.at, schedule.rrule))
    return alone and not bounded and is_zone(schedule.tz) and schedule.in_ is not None and schedule.in_ > 0


def _inner(schedule: Schedule, anchor: int, seed: str, start: int | None) -> Timetable:
    if schedule.cron is not None:
        return cron_timetable(schedule.cron, schedule.tz, seed)
    if schedule.every is not None:
        step = _positive("schedule.every", schedule.every)
        return Every(anchor + step if start is None else start, step, LATEST)
    if schedule.in_ is not None:
        return Once(_representable("schedule.in", anchor + _positive("schedule.in", schedule.in_), schedule.in_))
    at = read_time("schedule.at", schedule.at, schedule.tz)
    assert at is not None  # shape_problems saw that one kind is given
    return Once(at)


def shape_problems(schedule: Schedule) -> list[FieldProblem]:
    """Exactly one kind, and none that is not built. Raises NotAvailable when that is all there is to say."""
    given = [name for name in SCHEDULE_KINDS if getattr(schedule, "in_" if name == "in" else name) is not None]
    missing = [
        FieldProblem(
            path=f"schedule.{name}",
            message=f"not available: {name!r} is not supported in this version",
            given=brief(value),
            accepted="a schedule without it",
        )
        for name, value in (("rrule", schedule.rrule), ("exclude", schedule.exclude))
        if value is not None
    ]
    if len(given) == 1:
        if missing:
            raise NotAvailable(missing)
        return []
    message = "no schedule type given" if not given else f"more than one schedule type given: {', '.join(given)}"
    accepted = f"exactly one of {', '.join(SCHEDULE_KINDS)}"
    return [FieldProblem(path="schedule", message=message, given=given or None, accepted=accepted), *missing]


def refuse_unknown_zone(name: str) -> None:
    if not is_zone(name):
        close = close_names(name)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise Invalid.one(
            "schedule.tz",
            f"unknown time zone{hint}",
            given=name[:200],
            accepted='an IANA name such as "Europe/Berlin" or "UTC"',
        )


def read_time(path: str, text: str | None, zone: str, *, whole_day: bool = False) -> int | None:
    """RFC 3339, or local time in `zone`: in a gap the first valid instant after it, in a fold the first pass.

    A date alone is its first millisecond, with `whole_day` its last.
    """
    if text is None:
        return None
    local, has_offset = parse_local(text)
    if local is None:
        raise Invalid.one(path, "not a valid date and time", given=text[:200], accepted=ACCEPTED_TIMES)
    if has_offset:
        return _representable(path, parse_rfc3339(text), text)
    if not whole_day or len(text) > len("2026-12-31"):
        return _representable(path, from_local(zone, local), text)
    following = from_local(zone, local + timedelta(days=1)) if local.year < 9999 else None
    return _representable(path, None if following is None else following - 1, text)


def _representable(path: str, instant: int | None, given: object) -> int:
    if instant is None or not EARLIEST <= instant < LATEST:
        raise Invalid.one(path, "out of range", given=str(given), accepted="a time in the years 2 to 9998")
    return instant


def _positive(path: str, duration: int) -> int:
    if duration <= 0:
        raise Invalid.one(path, "must be more than zero", given=str(duration), accepted='a duration such as "90s"')
    return int(duration)
