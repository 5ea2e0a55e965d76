"""One-off jobs that have ended are written down as ended, many at once and after the fact.

A job's row stands in many indexes; rewriting it when its only run ends cost more than claim and finish together. So
finish leaves a note of the jobs in its own transaction, and their rows are closed later: by the node that recorded
their ends, as soon as it has nothing else to record, or by the duty. Nobody has to wait for it, and no reading does it:
a one-off job without a firing that lives has ended, and whoever reads a job looks (`is_over`, `columns.view`), lists
and counts by state at the notes, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from onthedot.model.job import JobRecord
from onthedot.store.driver import Driver, Transaction
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = ["NOTED", "EndedJob", "OneOffClosing", "close_one_offs", "is_over", "note_endings"]

AT_ONCE = 1000
"""Jobs in one transaction: a verb on one of them waits for no more than that."""

AT_MOST = 20_000
"""Jobs that one look of the duty closes."""

NOTED = 20_000
"""Jobs that are not closed yet and are found by their notes when jobs are listed or counted by their state. Only after
a great many ended at once there can be more, for seconds, and those are missing among the ended (never listed as
active)."""

BUSY = 5.0
"""Seconds after a claim that filled all the room there was."""

_IDS = msgspec.json.Decoder(list[int])


class EndedJob(Shape, frozen=True, order=True):
    id: int
    ended_at: int


def is_over(job: JobRecord, *, scheduled: bool) -> bool:
    """Whether a job that its row calls active has ended. scheduled: a firing of it lives."""
    return job.spec.schedule.one_off and not scheduled and job.state in ("active", "paused")


async def note_endings(tx: Transaction, job_ids: Sequence[int], ended_at: int) -> None:
    """These one-off jobs may have ended. In the transaction that took their runs away: a crash can't part the two."""
    if job_ids:
        await tx.execute("note_endings", len(job_ids), list(job_ids), ended_at)


async def close_one_offs(driver: Driver, most: int = AT_MOST) -> int:
    """Write down what notes say, about `most` jobs at the most. How many jobs they named."""

    async def body(tx: Transaction) -> int:
        noted = await tx.rows("take_endings", min(AT_ONCE, most - closed))
        if not noted:
            return 0
        ended = {job_id: row["ended_at"] for row in noted for job_id in _job_ids(row["job_ids"])}
        await _end(tx, ended)
        return len(ended)

    closed = 0
    while closed < most:
        if await driver.read(lambda tx: tx.row("any_endings")) is None:
            break
        closed += (count := await driver.transact(body))
        if not count:  # somebody else is at the rest
            break
    return closed


async def _end(tx: Transaction, ended: dict[int, int]) -> None:
    """Most jobs were never changed: they need no lock."""
    jobs = sorted(EndedJob(job_id, ended_at) for job_id, ended_at in ended.items())
    done = {row["id"] for row in await tx.rows("end_unchanged", Rows(jobs))}
    if len(done) < len(jobs):
        await _end_changed(tx, [job for job in jobs if job.id not in done])


async def _end_changed(tx: Transaction, jobs: Sequence[EndedJob]) -> None:
    """Jobs before runs, as in every verb. An edit may have given a job another slot: then it has a run and goes on."""
    locked = await tx.rows("lock_jobs", [job.id for job in jobs])
    if not locked:
        return
    over = {row["id"] for row in await tx.rows("end_jobs", Rows(jobs))}
    for row in locked:
        if row["state"] == "paused" and row["id"] in over:  # nobody can resume it any more: what waits for that goes on
            await tx.execute("release_runs", row["id"], await tx.now())


def _job_ids(kept: str | list[int]) -> list[int]:
    return _IDS.decode(kept) if isinstance(kept, str) else kept


class OneOffClosing(Topic):
    _full_at = float("-inf")

    def claimed_all_it_could(self) -> None:
        """There is more to run than this node has room for: closing can wait."""
        self._full_at = asyncio.get_running_loop().time()

    async def close_one_offs(self, most: int = AT_MOST) -> int:
        """One-off jobs that have ended get rows that say so. How many were looked at; `most`: there may be more."""
        return await close_one_offs(self.driver, most)

    async def close_one_offs_in_passing(self) -> int:
        """The duty. A little at a time, and no more than that while this node is busy, so that it takes no more than a
        few percent of the database from a drain: 11 µs a job, half as much as claim and finish together."""
        closed = 0
        while closed < AT_MOST:
            closed += (count := await close_one_offs(self.driver, AT_ONCE))
            if count < AT_ONCE or asyncio.get_running_loop().time() - self._full_at < BUSY:
                break
        return closed
