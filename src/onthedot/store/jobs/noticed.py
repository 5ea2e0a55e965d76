"""Jobs whose last run failed or was late, kept where lists of them find them.

A row is written when a run ends so. When a run ends well nothing is written: whether a noticed job is still failing or
late is looked up in its statistics by who lists them, and rows that are over are forgotten in portions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from onthedot.store.driver import Transaction
from onthedot.store.jobs.stats import FinishedCounts
from onthedot.store.queries import LATE_MS
from onthedot.store.shapes import Shape
from onthedot.store.topic import Topic

__all__ = ["NoticedJob", "NoticedJobs", "is_late", "noticed_of"]

PORTION = 2000
"""Rows that one look goes through: of each the statistics are read, and the history of a one-off."""


class NoticedJob(Shape, frozen=True, kw_only=True):
    tenant: int
    what: Literal["failing", "late"]
    job_id: int
    noticed_at: int


def is_late(lateness_ms: int | None) -> bool:
    return lateness_ms is not None and lateness_ms > LATE_MS


def noticed_of(ended: Iterable[tuple[int, bool, FinishedCounts]]) -> list[NoticedJob]:
    """Of (tenant, recurring, run) each job once, in one order for all who write. A one-off is not noticed as late: its
    time is over, and a burst of them must not write a row for each."""
    found: dict[tuple[int, str, int], NoticedJob] = {}
    for tenant, recurring, run in ended:
        if run.status == "failed":
            _add(found, NoticedJob(tenant=tenant, what="failing", job_id=run.job_id, noticed_at=run.finished_at))
        if recurring and is_late(run.lateness_ms):
            _add(found, NoticedJob(tenant=tenant, what="late", job_id=run.job_id, noticed_at=run.finished_at))
    return [found[key] for key in sorted(found)]


def _add(found: dict[tuple[int, str, int], NoticedJob], row: NoticedJob) -> None:
    found[row.tenant, row.what, row.job_id] = row


class NoticedJobs(Topic):
    _looked: tuple[int, str, int] = (0, "", 0)  # up to where; the next look goes on there

    async def forget_noticed(self) -> int:
        """Some of those that are neither failing nor late any more, and of jobs that are gone. How many."""

        async def body(tx: Transaction) -> tuple[int, tuple[int, str, int]]:
            there = await tx.row("noticed_after", *self._looked, PORTION)
            until = (2**62, "~", 0) if there is None else (there["tenant"], there["what"], there["job_id"])
            gone = await tx.execute("forget_noticed", *self._looked, *until)
            return gone, (0, "", 0) if there is None else until

        gone, self._looked = await self.driver.transact_slow(body)
        return gone
