"""Statistics of recurring jobs: one narrow row each, added to by finish in the order of the jobs, so that two nodes
that finish runs of the same jobs never wait for each other in a circle."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from typing import Protocol

from onthedot.store.shapes import Shape

__all__ = ["FinishedCounts", "stats_rows"]


class FinishedCounts(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def job_id(self) -> int: ...
    @property
    def status(self) -> str: ...
    @property
    def finished_at(self) -> int: ...
    @property
    def lateness_ms(self) -> int | None: ...
    @property
    def duration_ms(self) -> int | None: ...


class EndedRuns(Shape, frozen=True, kw_only=True):
    """What a batch adds to a job's row."""

    job_id: int
    runs: int
    failures: int
    timed: int
    duration_ms: int
    last_duration_ms: int | None
    last_lateness_ms: int | None
    last_status: str
    last_run_id: str
    last_finished_at: int


_job = attrgetter("job_id")


def stats_rows(ended: Iterable[FinishedCounts]) -> list[EndedRuns]:
    """One row per job, in the order of their ids."""
    ordered = sorted(ended, key=lambda item: (item.job_id, item.finished_at))
    return [_sum(job_id, list(items)) for job_id, items in groupby(ordered, _job)]


def _sum(job_id: int, items: list[FinishedCounts]) -> EndedRuns:
    durations = [item.duration_ms for item in items if item.duration_ms is not None]
    latenesses = [item.lateness_ms for item in items if item.lateness_ms is not None]
    last = items[-1]
    return EndedRuns(
        job_id=job_id,
        runs=len(items),
        failures=sum(item.status == "failed" for item in items),
        timed=len(durations),
        duration_ms=sum(durations),
        last_duration_ms=durations[-1] if durations else None,
        last_lateness_ms=latenesses[-1] if latenesses else None,
        last_status=last.status,
        last_run_id=last.id,
        last_finished_at=last.finished_at,
    )
