"""Formats jobs, schedules and durations for the dashboard."""

from __future__ import annotations

import re

from onthedot.model.job import JobView
from onthedot.model.schedule import Schedule
from onthedot.model.targets import Target
from onthedot.timing import describe

__all__ = ["expression", "how_long", "pieces", "schedule_words", "target_words", "title"]


def pieces(path: str) -> list[str]:
    """Split a URL or function name where a line may break."""
    return re.split(r"(?<=[/:?&])(?=[^/:])", path)


def title(job: JobView) -> str:
    return job.name or job.key or f"Job {job.id}"


def schedule_words(schedule: Schedule) -> str:
    words = describe(schedule)
    return words[:1].upper() + words[1:]


def expression(schedule: Schedule) -> str:
    """The schedule as written."""
    match schedule.kind:
        case "cron":
            written = schedule.cron or ""
        case "every":
            written = f"every {schedule.every}"
        case "in":
            written = f"in {schedule.in_}"
        case _:
            written = ""
    return f"{written} · {schedule.tz}" if written and schedule.tz != "UTC" else written


def target_words(target: Target) -> tuple[str, str]:
    """The target type and what it calls."""
    words = target.summary()
    return words.label, words.what


def how_long(ms: float | None) -> str:
    """12 ms, 1.4 s, 3 min, 2.5 h."""
    if ms is None:
        return ""
    for limit, size, unit in ((1000, 1, "ms"), (60_000, 1000, "s"), (3_600_000, 60_000, "min")):
        if ms < limit:
            return f"{_short(ms / size)} {unit}"
    return f"{_short(ms / 3_600_000)} h"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"
