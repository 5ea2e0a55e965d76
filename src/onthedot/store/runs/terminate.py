"""Runs that end without having been sent: cancelled while they waited, given up, their job gone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from onthedot import telemetry
from onthedot.store.driver import Row, Rows, Transaction
from onthedot.store.jobs.close_one_offs import FIRINGS, note_endings

__all__ = ["Ending", "end_runs", "firings_of_one_offs", "release_lanes"]


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    status: str
    reason: str | None = None


def _alarm(run_id: str) -> None:
    telemetry.emit("ledger.conflict", run_id=run_id)


async def end_runs(
    tx: Transaction, endings: Sequence[Ending], now: int, alarm: Callable[[str], None] = _alarm
) -> list[Row]:
    """Rows that this transaction has locked move into the ledger. A one-off job whose firing this was has ended, and
    whoever waits for a lane that becomes free is let go. Answers what they were. alarm: told of slots that were in the
    ledger before."""
    ids = [ending.id for ending in endings]
    ended = list(await tx.rows("runs_by_id", ids))
    if not ended:
        return []
    rows = Rows([(ending.id, ending.status, ending.reason, now) for ending in endings])
    there = {row["id"] for row in await tx.rows("end_runs", rows)}
    await tx.execute("delete_runs", ids)
    for row in ended:
        if row["id"] not in there:
            alarm(row["id"])
    await note_endings(tx, firings_of_one_offs(ended), now)
    await release_lanes(tx, ended)
    return ended


def firings_of_one_offs(ended: Sequence[Row]) -> list[int]:
    """The jobs that may have ended with these runs: their own firing, or the one that an update made anew of it."""
    return sorted({row["job_id"] for row in ended if not row["recurring"] and row["kind"] in FIRINGS})


async def release_lanes(tx: Transaction, ended: Sequence[Row]) -> None:
    """The next one in each lane that lost its holder may be claimed now."""
    lanes = sorted({row["lane"] for row in ended if row["lane"] is not None})
    if lanes:
        await tx.execute("release_lanes", lanes)
