"""Runs of jobs that may not overlap: at most one of each lane is claimed, decided on what runs now.

Their jobs are locked, so no other node decides about the same lane; the run that holds the lane is locked too, so that
its finish comes after us and releases whom we park. A holder that can't be locked is being finished this very moment:
its lane is left for the next claim.
"""

from __future__ import annotations

from collections.abc import Sequence

from onthedot.model.job import JobRecord
from onthedot.model.run import ClaimedRun
from onthedot.plan import Skipped, expired, on_lane
from onthedot.store.driver import Transaction
from onthedot.store.runs.claim_batch import ClaimBatch, Firing
from onthedot.store.runs.orders import StopOrder, order_stop, replace_by
from onthedot.store.runs.row import ClaimedRow, claimed_run

__all__ = ["claim_lanes"]


class _Lane:
    """One lane as this claim sees it: who holds it, which scheduled run waits."""

    def __init__(self) -> None:
        self.holder: str | None = None
        self.waiter: str | None = None
        self.busy = False


async def claim_lanes(
    tx: Transaction, node: str, rows: Sequence[ClaimedRow], jobs: dict[int, JobRecord], batch: ClaimBatch
) -> list[ClaimedRun]:
    """Decide on each picked run, in order of its time; those that may run are taken."""
    if not rows:
        return []
    lanes = await _lanes(tx, {row.lane for row in rows if row.lane is not None})
    moves = _Moves(batch)
    for row in rows:
        assert row.lane is not None  # it is how they were picked
        lane, job = lanes[row.lane], jobs[row.job_id]
        if not lane.busy:
            moves.decide(row, job, lane)
    return await moves.write(tx, node)


async def _lanes(tx: Transaction, wanted: set[int]) -> dict[int, _Lane]:
    lanes = {lane: _Lane() for lane in wanted}
    for row in await tx.rows("lane_state", sorted(wanted)):
        lane = lanes[row["lane"]]
        if not row["running"]:
            lane.waiter = row["id"]
        elif row["locked"]:
            lane.holder = row["id"]
        else:
            lane.busy = True
    return lanes


def _fires_after(run: str | None, slot: int, now: int) -> bool:
    """Whether that run is the firing of a later slot that has come. What was asked for by hand is none, nor is what
    fired early because the clock was ahead."""
    name = "" if run is None else run.partition("-")[2]
    return name.isdigit() and slot < int(name) <= now


class _Moves:
    def __init__(self, batch: ClaimBatch) -> None:
        self._batch = batch
        self._run: dict[str, JobRecord] = {}
        self._wait: list[str] = []
        self._stop: dict[str, str] = {}  # who holds a lane, and who takes it

    def decide(self, row: ClaimedRow, job: JobRecord, lane: _Lane) -> None:
        firing = self._firing(row, job)
        if firing is None:
            return
        move = on_lane(
            job.spec.policy.overlap,
            row.kind,
            first=row.token == 0,
            held=lane.holder is not None,
            waited_for=lane.waiter is not None,
            newer=any(_fires_after(other, firing.slot, self._batch.now) for other in (lane.holder, lane.waiter)),
        )
        if move == "skip":
            if row.recurring:
                self._give_up(row.id, job, firing.slot)
            else:  # it was the only slot there is: its job ends with it
                self._batch.end(row, "skipped", "overlap")
            return
        if firing.id != row.id:
            self._batch.move(row.id, firing)
        if move == "run":
            lane.holder = firing.id
            self._run[firing.id] = job
            return
        if move == "replace" and lane.holder is not None:
            self._stop[lane.holder] = firing.id
            if lane.waiter is not None:
                self._replace_waiter(job, lane.waiter)
        self._wait.append(firing.id)
        if row.kind == "scheduled" and row.token == 0:
            lane.waiter = firing.id

    def _firing(self, row: ClaimedRow, job: JobRecord) -> Firing | None:
        """Which slot this row fires, after catch-up; None: none."""
        if row.cursor and row.recurring:
            return self._batch.fire(row, job)
        if row.token == 0 and expired(job.spec.policy, row.due_at, self._batch.now):
            self._batch.end(row, "skipped", "late")
            return None
        return Firing(row.id, row.slot, row.due_at)

    def _give_up(self, row_id: str, job: JobRecord, slot: int) -> None:
        self._batch.drop(row_id)
        self._batch.skip(job, Skipped(first=slot, last=slot, slots=1, reason="overlap"))

    def _replace_waiter(self, job: JobRecord, waiter: str) -> None:
        slot = int(waiter.partition("-")[2])
        if waiter in self._wait:
            self._wait.remove(waiter)
        self._give_up(waiter, job, slot)

    async def write(self, tx: Transaction, node: str) -> list[ClaimedRun]:
        """Rows get their names before they are taken, and stop being cursors before their successors come."""
        await self._batch.write_moves(tx)
        taken = []
        if self._run:
            for row in [ClaimedRow(*found) for found in await tx.rows("take_lanes", node, list(self._run))]:
                job = self._run[row.id]
                taken.append(claimed_run(row, job.version, job.spec))
        if self._wait:
            await tx.execute("wait_in_lane", self._wait)
        await order_stop(tx, [StopOrder(holder, replace_by(newer)) for holder, newer in sorted(self._stop.items())])
        return taken
