"""Formats jobs, schedules and durations for the dashboard."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

from onthedot.model.actor import actor_words
from onthedot.model.duration import MINUTE
from onthedot.model.instant import parse_rfc3339
from onthedot.model.job import JobView
from onthedot.model.schedule import Schedule
from onthedot.model.targets import Target
from onthedot.model.targets.registry import find_spec
from onthedot.timing import describe
from onthedot.timing.zones import zone

__all__ = [
    "actor_words",
    "asked_words",
    "count_words",
    "expression",
    "how_long",
    "in_zone",
    "instants",
    "kind_words",
    "node_name",
    "number",
    "pieces",
    "relative",
    "schedule_words",
    "sentence",
    "status_words",
    "target_words",
    "timetable_words",
    "title",
    "utc",
]

UNITS = (("y", 31_536_000), ("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
STATUS_WORDS = {
    "PENDING": "pending",
    "EXECUTING": "running",
    "DONE": "done",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "SKIPPED": "skipped",
}


def pieces(path: str) -> list[str]:
    """Split a URL or function name where a line may break."""
    return re.split(r"(?<=[/:?&])(?=[^/:])", path)


def kind_words(kind: str) -> str:
    """A type of target."""
    spec = find_spec(kind)
    return ((spec and spec.label) or kind).capitalize()


def title(job: JobView) -> str:
    return job.name or job.key or f"Job {job.id}"


def schedule_words(schedule: Schedule) -> str:
    return timetable_words(describe(schedule))


def timetable_words(words: str) -> str:
    """As `describe` says it, with a capital, and an instant as pages write it."""
    words = instants(words)
    return words[:1].upper() + words[1:]


def instants(words: str) -> str:
    """A text with its instants as pages write them."""
    return re.sub(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?Z", r"\1 \2 UTC", words)


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


def relative(at: str, now: int, due: bool = False) -> str:
    """in 5 min 3 s, 2 d 4 h ago, now: as `times.js` says it, so that nothing jumps when it begins. `due`: it is to
    come, so that its time has come does not mean that it has happened."""
    moment = parse_rfc3339(at)
    if moment is None:
        return at
    seconds = (moment - now) / 1000
    if abs(seconds) <= 1:
        return "now"
    if due and -MINUTE / 1000 < seconds < 0:
        return "due now"
    span = _span(-int(-seconds // 1) if seconds > 0 else int(-seconds))
    return f"in {span}" if seconds > 0 else f"due {span} ago" if due else f"{span} ago"


def _span(seconds: int) -> str:
    for number_, (unit, size) in enumerate(UNITS):
        if seconds >= size or unit == "s":
            whole = seconds // size
            below = UNITS[number_ + 1] if unit != "s" and whole < 10 else None
            rest = 0 if below is None else seconds % size // below[1]
            return f"{whole} {unit} {rest} {below[0]}" if below is not None and rest else f"{whole} {unit}"
    raise AssertionError("the last unit fits always")


def node_name(node: str | None, names: Mapping[str, str]) -> str | None:
    """As people know it. Where nobody remembers the name (it was forgotten, or an older release ran it) the beginning
    of the id tells it from others."""
    if not node:
        return None
    return names.get(node) or (node if len(node) <= 8 else f"{node[:8]}… (stopped since)")


def utc(at: str, ms: bool = False) -> str:
    """2026-11-18 00:44:03 UTC, or 2026-11-18 00:44:03.021 UTC."""
    return f"{at[:10]} {at[11 : 23 if ms and len(at) >= 24 else 19]} UTC" if len(at) >= 20 else at


def in_zone(at: str, name: str) -> str:
    """The same in the zone of a job: 2026-11-18 01:44:03."""
    moment = parse_rfc3339(at)
    if moment is None:
        return at
    return datetime.fromtimestamp(moment / 1000, zone(name)).strftime("%Y-%m-%d %H:%M:%S")


def number(value: float) -> str:
    return f"{value:,}"


def count_words(count: int, one: str, many: str | None = None) -> str:
    """1 job, 2 jobs, 1,200 jobs."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def sentence(text: str) -> str:
    """With a capital at its start and a full stop at its end."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?", "…")) else ".")


def asked_words(name: str, value: object) -> tuple[str, str]:
    """A filter or parameter and its value: ("tag", "etl"), ("", "failing"), ("", "not ended")."""
    label = "text" if name == "q" else name.replace("_", " ")
    if isinstance(value, bool):
        return "", label if value else f"not {label}"
    return label, str(value)


def status_words(status: str) -> str:
    return STATUS_WORDS.get(status, status.lower())
