"""Runs that end without having been sent: cancelled while they waited, given up, their job gone. And slots that never
become a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onthedot import telemetry
from onthedot.model.job import JobRecord
from onthedot.model.run import run_id
from onthedot.plan import FIRINGS, Skipped
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.close_one_offs import note_endings
from onthedot.store.runs.groups import settle_groups
from onthedot.store.shapes import Rows, Shape

__all__ = ["Ending", "SkippedSlots", "end_runs", "firings_of_one_offs", "release_lanes", "skip_slots"]


class Ending(Shape, frozen=True, kw_only=True):
    id: str
    status: str
    reason: str | None
    finished_at: int


class SkippedSlots(Shape, frozen=True, kw_only=True):
    """One row of the ledger for a slot that policy decided not to fire, or for a range of them."""

    id: str
    tenant: int
    job_id: int
    slot: int
    until_slot: int | None
    slots: int | None
    reason: str
    finished_at: int

    @staticmethod
    def of(job: JobRecord, gap: Skipped, now: int) -> SkippedSlots:
        return SkippedSlots(
            id=run_id(job.id, gap.first),
            tenant=job.tenant,
            job_id=job.id,
            slot=gap.first,
            until_slot=None if gap.last == gap.first else gap.last,
            slots=gap.slots,
            reason=gap.reason,
            finished_at=now,
        )


async def skip_slots(tx: Transaction, skipped: Sequence[SkippedSlots]) -> list[str]:
    """Slots that will not fire enter the ledger. The ids of those that were there before."""
    if not skipped:
        return []
    there = {row["id"] for row in await tx.rows("skip_slots", Rows(skipped))}
    return [slots.id for slots in skipped if slots.id not in there]


def _alarm(run_id: str) -> None:
    telemetry.emit("ledger.conflict", run_id=run_id)


async def end_runs(
    tx: Transaction, endings: Sequence[Ending], alarm: Callable[[str], None] = _alarm, *, settle: bool = True
) -> list[Row]:
    """Rows that this transaction has locked move into the ledger. A one-off job whose firing this was has ended, and
    whoever waits for a lane or a group that has room now is let go. Answers what they were. alarm: told of slots that
    were in the ledger before. Not `settle`: the caller does that for their groups, when it has nothing left to wait
    for."""
    ids = [ending.id for ending in endings]
    ended = list(await tx.rows("runs_by_id", ids))
    if not ended:
        return []
    there = {row["id"] for row in await tx.rows("end_runs", Rows(endings))}
    await tx.execute("delete_runs", ids)
    for row in ended:
        if row["id"] not in there:
            alarm(row["id"])
    await note_endings(tx, firings_of_one_offs(ended), max(ending.finished_at for ending in endings))
    await release_lanes(tx, ended)
    if settle:
        await settle_groups(tx, ended)
    return ended


def firings_of_one_offs(ended: Sequence[Row]) -> list[int]:
    """The jobs that may have ended with these runs: their own firing, or the one that an update made anew of it."""
    return sorted({row["job_id"] for row in ended if not row["recurring"] and row["kind"] in FIRINGS})


async def release_lanes(tx: Transaction, ended: Sequence[Row]) -> None:
    """The next one in each lane that lost its holder may be claimed now."""
    lanes = sorted({row["lane"] for row in ended if row["lane"] is not None and row["lane"] > 0})
    if lanes:
        await tx.execute("release_lanes", lanes)
