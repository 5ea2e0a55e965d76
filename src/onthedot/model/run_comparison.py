"""Two runs side by side: what differs between them that may tell why one failed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from onthedot.model.run import RunView

__all__ = ["RunComparison", "RunDifference", "compare_views", "is_notable"]

MOST = 100
"""Differences that are told."""
NOTABLE_MS = 100
"""A duration differs if it is twice the other, and by so much."""
_OF_EACH_RUN = (
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "x-onthedot-job",
    "x-onthedot-scheduled-for",
    "x-onthedot-attempt",
)
"""Headers that are another's with every run."""
_ABSENT = object()


class RunDifference(msgspec.Struct, frozen=True, kw_only=True):
    """`field`: "status", "duration_ms", "job_version", or a path such as "request.body.amount" or "params.day". null:
    the run has no such value."""

    field: str
    this: Any
    other: Any


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """`run_version`, `other_version`: of the job, as each run was started with it; null: not known any more.
    `differences`: what is another's with every run (IDs, times) is left out, and durations that hardly differ;
    `truncated`: there are more."""

    run: RunView
    other: RunView
    run_version: int | None
    other_version: int | None
    differences: list[RunDifference]
    truncated: bool = False


def compare_views(run: RunView, other: RunView, run_version: int | None, other_version: int | None) -> RunComparison:
    """Of runs as `inspect_run` gives them."""
    plain = [
        (name, getattr(run, name), getattr(other, name))
        for name in ("status", "reason", "error", "tries", "losses", "node", "key")
    ]
    plain += [
        ("trigger", run.trigger.kind, other.trigger.kind),
        ("job_version", run_version, other_version),
        *((f"outcome.{name}", _of(run, name), _of(other, name)) for name in ("kind", "status_code", "exit_code")),
    ]
    found = [RunDifference(field=name, this=this, other=that) for name, this, that in plain if this != that]
    for name in ("lateness_ms", "duration_ms"):
        this, that = getattr(run, name), getattr(other, name)
        if is_notable(this, that):
            found.append(RunDifference(field=name, this=this, other=that))
    same_by_nature = {(run.id, other.id), (run.scheduled_for, other.scheduled_for), (run.attempt, other.attempt)}
    for name in ("params", "request", "response"):
        for difference in _differences(name, _json(getattr(run, name)), _json(getattr(other, name))):
            if not _is_of_each_run(difference, same_by_nature):
                found.append(difference)
                if len(found) > MOST:
                    break
    return RunComparison(
        run=run,
        other=other,
        run_version=run_version,
        other_version=other_version,
        differences=found[:MOST],
        truncated=len(found) > MOST,
    )


def _of(run: RunView, name: str) -> Any:
    return (run.outcome or {}).get(name)


def is_notable(this: int | None, that: int | None) -> bool:
    """Of durations: whether the difference may mean something."""
    if this is None or that is None:
        return this != that
    return abs(this - that) >= NOTABLE_MS and max(this, that) >= 2 * min(this, that)


def _json(value: Any) -> Any:
    return None if value is None or value is msgspec.UNSET else msgspec.to_builtins(value)


def _is_of_each_run(difference: RunDifference, same_by_nature: set[tuple[Any, Any]]) -> bool:
    if difference.field.removeprefix("request.headers.") in _OF_EACH_RUN or difference.field == "request.what":
        return True
    values = difference.this, difference.other
    return all(isinstance(value, str | int) for value in values) and values in same_by_nature


def _differences(path: str, this: Any, other: Any) -> Iterator[RunDifference]:
    """The leaves that differ, in the order of the first."""
    if isinstance(this, Mapping) and isinstance(other, Mapping):
        for name in dict.fromkeys([*this, *other]):
            yield from _differences(f"{path}.{name}", this.get(name, _ABSENT), other.get(name, _ABSENT))
    elif isinstance(this, list) and isinstance(other, list) and len(this) == len(other):
        for place, (one, that) in enumerate(zip(this, other, strict=True)):
            yield from _differences(f"{path}[{place}]", one, that)
    elif this != other or type(this) is not type(other):
        shown = [None if value is _ABSENT else value for value in (this, other)]
        yield RunDifference(field=path, this=shown[0], other=shown[1])
