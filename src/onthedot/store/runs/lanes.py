"""Runs of jobs that may not overlap: at most one of each lane is claimed, decided on what runs now.

Their jobs are locked, so no other node decides about the same lane; the run that holds the lane is locked too, so that
its finish comes after us and releases whom we park. A holder that can't be locked is being finished this very moment:
its lane is left for the next claim.

So are runs of concurrency groups, with or without a lane: who may run by its lane runs if its group has room, and is
set aside otherwise (see `groups`). While it waits for its group, it has its lane as if it were running.
"""

from __future__ import annotations

from collections.abc import Sequence

from onthedot.model.group import Membership, membership
from onthedot.model.job import JobRecord
from onthedot.model.run import ClaimedRun
from onthedot.plan import LaneMove, Skipped, expired, on_lane
from onthedot.store.driver import Transaction
from onthedot.store.runs.claim_batch import ClaimBatch, Firing
from onthedot.store.runs.groups import ClaimedGroups
from onthedot.store.runs.orders import StopOrder, order_stop, replace_by
from onthedot.store.runs.row import ClaimedRow, claimed_run

__all__ = ["claim_lanes"]


class _Lane:
    """One lane as this claim sees it: who holds it, which scheduled run waits, and who will hold it when its group has
    room."""

    def __init__(self) -> None:
        self.holder: str | None = None
        self.waiter: str | None = None
        self.in_line: str | None = None
        self.replaceable = False  # who is in line: a slot's own firing that never ran
        self.busy = False


async def claim_lanes(
    tx: Transaction, node: str, rows: Sequence[ClaimedRow], jobs: dict[int, JobRecord], batch: ClaimBatch
) -> list[ClaimedRun]:
    """Decide on each picked run, in order of its time; those that may run are taken."""
    if not rows:
        return []
    memberships = _memberships(rows, jobs)
    grouped = {row.lane for row in rows if row.job_id in memberships and row.lane is not None}
    lanes = await _lanes(tx, {row.lane for row in rows if row.lane is not None and row.lane > 0}, grouped)
    groups = ClaimedGroups(tx)
    await groups.lock(memberships.values())
    moves = _Moves(batch, groups)
    for row in rows:
        assert row.lane is not None  # it is how they were picked
        lane, group = lanes.get(row.lane), memberships.get(row.job_id)
        if group is not None and not groups.has(group.key):
            batch.left_alone = True
        elif lane is None or not lane.busy:
            moves.decide(row, jobs[row.job_id], lane, group)
    return await moves.write(tx, node)


def _memberships(rows: Sequence[ClaimedRow], jobs: dict[int, JobRecord]) -> dict[int, Membership]:
    """By job; most have none."""
    found: dict[int, Membership] = {}
    for row in rows:
        group = membership(row.tenant, row.job_id, jobs[row.job_id].spec.policy)
        if group is not None:
            found[row.job_id] = group
    return found


async def _lanes(tx: Transaction, wanted: set[int], grouped: set[int]) -> dict[int, _Lane]:
    lanes = {lane: _Lane() for lane in wanted}
    if not wanted:
        return lanes
    if among := sorted(wanted & grouped):
        for row in await tx.rows("lanes_in_line", among):
            lane = lanes[row["lane"]]
            lane.in_line, lane.replaceable = row["id"], row["kind"] == "scheduled" and not row["token"]
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
    def __init__(self, batch: ClaimBatch, groups: ClaimedGroups) -> None:
        self._batch = batch
        self._groups = groups
        self._run: dict[str, JobRecord] = {}
        self._wait: list[str] = []
        self._stop: dict[str, str] = {}  # who holds a lane, and who takes it

    def decide(self, row: ClaimedRow, job: JobRecord, lane: _Lane | None, group: Membership | None) -> None:
        firing = self._firing(row, job)
        if firing is None:
            return
        if lane is None:
            move: LaneMove = "run"
        else:
            move = self._in_lane(row, job, lane, firing)
        if move == "skip":
            if row.recurring:
                self._give_up(row.id, job, firing.slot)
            else:  # it was the only slot there is: its job ends with it
                self._batch.end(row, "skipped", "overlap")
            return
        if firing.id != row.id:
            self._batch.move(row.id, firing)
        if move == "run":
            if lane is not None:
                lane.holder = firing.id
            if group is None:
                self._run[firing.id] = job
            else:
                self._groups.want(group.key, firing.id, firing.due_at, job, _until(row, job, firing))
            return
        assert lane is not None
        if move == "replace" and lane.holder is not None:
            self._stop[lane.holder] = firing.id
            if lane.waiter is not None:
                self._replace_waiter(job, lane.waiter)
        self._wait.append(firing.id)
        if row.kind == "scheduled" and row.token == 0:
            lane.waiter = firing.id

    def _in_lane(self, row: ClaimedRow, job: JobRecord, lane: _Lane, firing: Firing) -> LaneMove:
        """Who waits for its group has the lane: the next one is skipped, waits, or takes its place."""
        overlap, first = job.spec.policy.overlap, row.token == 0
        ahead = None if lane.in_line == row.id else lane.in_line
        newer = any(_fires_after(other, firing.slot, self._batch.now) for other in (lane.holder, lane.waiter, ahead))
        if ahead is not None and lane.replaceable and overlap == "replace" and row.kind == "scheduled" and first:
            if newer:
                return "skip"
            self._replace_waiter(job, ahead)
            lane.in_line = ahead = None
        return on_lane(
            overlap,
            row.kind,
            first=first,
            held=lane.holder is not None or ahead is not None,
            waited_for=lane.waiter is not None,
            newer=newer,
        )

    def _firing(self, row: ClaimedRow, job: JobRecord) -> Firing | None:
        """Which slot this row fires, after catch-up; None: none."""
        if row.cursor and row.recurring:
            return self._batch.fire(row, job)
        if row.token == 0 and expired(job.spec.policy, row.due_at, self._batch.now):
            self._batch.end(row, "skipped", "late", job.spec)
            return None
        return Firing(row.id, row.slot, row.due_at)

    def _give_up(self, row_id: str, job: JobRecord, slot: int) -> None:
        self._batch.drop(row_id)
        self._batch.skip(job, Skipped(first=slot, last=slot, slots=1, reason="overlap"))

    def _replace_waiter(self, job: JobRecord, waiter: str) -> None:
        slot = int(waiter.partition("-")[2])
        if waiter in self._wait:
            self._wait.remove(waiter)
        self._groups.give_up(waiter)
        self._give_up(waiter, job, slot)

    async def write(self, tx: Transaction, node: str) -> list[ClaimedRun]:
        """Rows get their names before they are taken, and stop being cursors before their successors come."""
        await self._batch.write_moves(tx)
        taken = []
        self._run |= await self._groups.decide()
        self._batch.set_aside = self._groups.set_aside
        self._batch.left_alone = self._batch.left_alone or self._groups.called > 0
        if self._run:
            for row in [ClaimedRow(*found) for found in await tx.rows("take_lanes", node, list(self._run))]:
                job = self._run[row.id]
                taken.append(claimed_run(row, job.version, job.spec))
        if self._wait:
            await tx.execute("wait_in_lane", self._wait)
        await order_stop(tx, [StopOrder(holder, replace_by(newer)) for holder, newer in sorted(self._stop.items())])
        return taken


def _until(row: ClaimedRow, job: JobRecord, firing: Firing) -> int | None:
    """When it expires while it waits for its group; None: never, as what was sent before."""
    expires = job.spec.policy.expires_in
    return None if expires is None or row.token else firing.due_at + expires + 1
