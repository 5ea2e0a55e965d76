"""Statistics of recurring jobs: one narrow row each, added to by finish in the order of the jobs, so that two nodes
that finish runs of the same jobs never wait for each other in a circle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

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


def stats_rows(ended: Iterable[FinishedCounts]) -> list[tuple[Any, ...]]:
    """One row per job, in the columns of `add_stats`."""
    sums: dict[int, list[Any]] = {}
    for item in sorted(ended, key=lambda item: (item.job_id, item.finished_at)):
        row = sums.get(item.job_id)
        if row is None:
            row = sums[item.job_id] = [item.job_id, 0, 0, 0, 0, None, None, None, None, None]
        row[1] += 1
        row[2] += item.status == "failed"
        if item.duration_ms is not None:
            row[3] += 1
            row[4] += item.duration_ms
            row[5] = item.duration_ms
        if item.lateness_ms is not None:
            row[6] = item.lateness_ms
        row[7:10] = item.status, item.id, item.finished_at
    return [tuple(row) for row in sums.values()]
