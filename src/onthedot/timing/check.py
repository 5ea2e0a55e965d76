"""Is this schedule one that can ever fire? Every problem at once, for the person who wrote it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from onthedot.errors import FieldProblem, Invalid, NotAvailable
from onthedot.model.instant import format_instant
from onthedot.model.schedule import Schedule
from onthedot.timing.compile import compile_schedule, plain_delay, read_time, refuse_unknown_zone, shape_problems
from onthedot.timing.cron import cron_timetable
from onthedot.timing.cron_text import long_steps
from onthedot.timing.zones import is_zone

__all__ = ["check_schedule"]

T = TypeVar("T")
SHORTEST = 100
"""The shortest interval, in ms: a thousand runs a second of one job is almost certainly a mistake."""


def check_schedule(schedule: Schedule, *, now: int, changed: bool = True, timed: bool = True) -> None:
    """Raises Invalid (or NotAvailable, if nothing else is wrong) with all that makes this schedule impossible.

    `changed` False: the schedule is the one the job already had. Then its time may have passed, and what was accepted
    before stays so: loading the same file twice must change nothing. `timed` False: whether its time has passed is not
    asked either, for it will be where it is written.
    """
    if plain_delay(schedule, now) is not None:
        return
    problems: list[FieldProblem] = []
    zone = schedule.tz if is_zone(schedule.tz) else "UTC"

    def gather(step: Callable[[], T]) -> T | None:
        try:
            return step()
        except Invalid as invalid:
            problems.extend(invalid.problems)
            return None

    problems += gather(lambda: shape_problems(schedule)) or ()
    gather(lambda: refuse_unknown_zone(schedule.tz))
    for name, duration in (("every", schedule.every), ("in", schedule.in_)):
        if duration is not None and duration <= 0:
            problems.append(_zero(name, str(duration)))
    if changed and schedule.every is not None and 0 < schedule.every < SHORTEST:
        problems.append(_too_often(str(schedule.every)))
    if (cron := schedule.cron) is not None:
        table = gather(lambda: cron_timetable(cron, zone))
        if changed and table is not None:
            problems += long_steps(table.parts)
    at = gather(lambda: read_time("schedule.at", schedule.at, zone))
    start = gather(lambda: read_time("schedule.start", schedule.start, zone))
    end = gather(lambda: read_time("schedule.end", schedule.end, zone, whole_day=True))
    if at is not None and at <= now and changed and timed:
        problems.append(_past(schedule, now))
    if start is not None and end is not None and end <= start:
        problems.append(
            FieldProblem(
                path="schedule.end",
                message="must be after start",
                given=schedule.end,
                accepted=f"after {schedule.start}",
            )
        )
    if not problems:
        times = gather(lambda: compile_schedule(schedule, anchor=now))
        if times is not None and changed and timed and times.next_after(now) is None:
            problems.append(
                FieldProblem(
                    path="schedule",
                    message="never fires: no fire time is left after now within start and end",
                    accepted=f"a schedule that fires after {format_instant(now)}",
                )
            )
    if problems:
        kind = NotAvailable if all(p.message.startswith("not available") for p in problems) else Invalid
        raise kind(problems)


def _zero(name: str, given: str) -> FieldProblem:
    return FieldProblem(
        path=f"schedule.{name}", message="must be more than zero", given=given, accepted='a duration such as "90s"'
    )


def _too_often(given: str) -> FieldProblem:
    return FieldProblem(path="schedule.every", message="is too short", given=given, accepted=f"{SHORTEST}ms or longer")


def _past(schedule: Schedule, now: int) -> FieldProblem:
    return FieldProblem(
        path="schedule.at", message="is in the past", given=schedule.at, accepted=f"a time after {format_instant(now)}"
    )
