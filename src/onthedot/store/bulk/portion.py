"""One portion of a bulk operation: the whole of a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from onthedot.model.bulk import (
    DEAD_VERBS,
    BackfillParams,
    BulkError,
    BulkFilter,
    BulkOperation,
    BulkState,
    DiscardParams,
    RedriveParams,
)
from onthedot.model.decoding import encode_json
from onthedot.model.instant import parse_rfc3339
from onthedot.plan.portions import portion
from onthedot.store.bulk.job_verbs import PORTIONS, Tally, apply_to_jobs
from onthedot.store.bulk.rows import OperationStep, StartedOperation, operation_view, started_operation
from onthedot.store.bulk.selection import dead_letters_after, jobs_below
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.apply_plan import lock
from onthedot.store.runs.dead_letters import close_letters
from onthedot.store.runs.manual import add_slots, slots_from
from onthedot.store.runs.row import parse_run_id
from onthedot.store.runs.spec_cache import SpecCache
from onthedot.store.runs.verbs import EndedKey, drive_again
from onthedot.store.shapes import Rows

__all__ = ["BulkPortion", "WorkedOff"]

ERRORS_KEPT = 20
LETTERS = 500
SLOTS = 500
"""Of one job, that a portion of its backfill looks at."""
WATCHED_MOST = 500
"""Redriven runs whose results are waited for at the same time, if failures are to stop the operation."""
LOOK_AGAIN = 1000  # ms between two looks at their results
LAST_ID = "~"  # above the id of any run


class WorkedOff(msgspec.Struct, frozen=True, kw_only=True):
    """`due`, `orders`: what nodes are to be told."""

    operation: BulkOperation
    tenant: int
    due: bool
    orders: bool


class BulkPortion:
    def __init__(self, node: str, share: int, careful: dict[int, int], specs: SpecCache) -> None:
        self.node = node
        self.operation: StartedOperation | None = None
        self.size = 0
        self._share = share
        self._careful = careful
        self._specs = specs

    async def attempt(self, tx: Transaction) -> WorkedOff | None:
        self.operation, self.size = None, 0
        row = await tx.row("take_operation")
        if row is None:
            return None
        self.operation = operation = started_operation(row)
        step = _Step(row, operation, self.node)
        most = self._most(operation)
        if operation.verb in DEAD_VERBS:
            await self._letters(tx, operation, step, most)
        elif operation.by_slot:
            await self._slots(tx, operation, step, most)
        else:
            await self._jobs(tx, operation, step, most)
        if operation.id in self._careful:
            self._careful[operation.id] -= 1
            if self._careful[operation.id] <= 0:
                del self._careful[operation.id]
        return await step.write(tx)

    async def pass_over(self, tx: Transaction, error: Exception) -> WorkedOff | None:
        """Of what the portion of one has met, only the position moves. None: another node has moved it meanwhile."""
        row = await tx.row("take_operation")
        if row is None:
            return None
        operation = started_operation(row)
        tried = self.operation
        if tried is None or (operation.id, operation.position) != (tried.id, tried.position):
            return None
        step = _Step(row, operation, self.node)
        if operation.verb in DEAD_VERBS:
            letters = await _next_letters(tx, operation, 1)
            met: list[Any] = [row["id"] for row in letters.rows]
            step.at(letters.position, over=letters.last)
        elif operation.by_slot:
            met = [*(operation.ids or ())]
            step.stop("the job could not be backfilled")
        else:
            met, below, over = await _next_jobs(tx, operation, 1)
            step.at([below], over=over)
        tally = Tally()
        for each in met:
            tally.refuse(each, f"internal error: {type(error).__name__}; see the server log")
        step.count(tally)
        return await step.write(tx)

    def _most(self, operation: StartedOperation) -> int:
        if operation.id in self._careful:
            return 1
        each = SLOTS if operation.by_slot else PORTIONS.get(operation.verb, LETTERS)
        return max(1, each // self._share)

    async def _jobs(self, tx: Transaction, operation: StartedOperation, step: _Step, most: int) -> None:
        size, gap = portion(operation.rate, most)
        ids, below, over = await _next_jobs(tx, operation, size)
        self.size = len(ids)
        step.count(await apply_to_jobs(tx, operation.verb, operation.tenant, ids, operation.params, operation.by))
        step.at([below], over=over)
        step.pause(gap if ids else 0)

    async def _slots(self, tx: Transaction, operation: StartedOperation, step: _Step, most: int) -> None:
        """The job may be edited, paused or deleted between two portions: each reads it anew."""
        said = msgspec.convert(operation.params, BackfillParams)
        size, gap = portion(operation.rate, most)
        start = parse_rfc3339(said.start) or 0 if operation.position is None else int(operation.position[0])
        job_id = int((operation.ids or [0])[0])
        tally, job = Tally(due=True), await lock(tx, operation.tenant, job_id)
        if job is None or job.record.state == "quarantined":
            tally.refuse(job_id, f"job {job_id} {'not found' if job is None else 'is quarantined'}")
            step.count(tally)
            step.stop(f"the job {'was deleted' if job is None else 'is quarantined'}")
            return
        slots, after = await slots_from(tx, job, start, parse_rfc3339(said.end) or 0, size, force=said.force)
        tally.done = self.size = len(await add_slots(tx, job, slots, operation.by)) if slots else 0
        step.count(tally)
        step.at([start if after is None else after], over=after is None)
        step.pause(gap if slots else 0)

    async def _letters(self, tx: Transaction, operation: StartedOperation, step: _Step, most: int) -> None:
        """`first`: so many, and then their results. `stop_at_failures`: never more are under way than are watched."""
        closing = operation.verb == "discard"
        said = RedriveParams() if closing else msgspec.convert(operation.params, RedriveParams)
        await step.look_at_results(tx)
        limit = said.stop_at_failures
        if limit is not None and step.failed_again >= limit:
            step.stop(f"{step.failed_again} of the redriven runs failed again")
            return
        size, gap = portion(operation.rate, most)
        first = max(0, (said.first or 0) - step.seen)
        if first:
            size = min(size, first)
        elif step.watched and step.seen <= (said.first or 0):
            step.pause(LOOK_AGAIN)
            return
        elif limit is not None:
            size = min(size, WATCHED_MOST - len(step.watched))
            if size <= 0:
                step.pause(LOOK_AGAIN)
                return
        letters = await _next_letters(tx, operation, size)
        self.size = len(letters.rows)
        if closing:
            await self._close(tx, operation, letters, step)
            new: list[str] = []
        else:
            new = await self._drive(tx, operation, letters, step)
        if first or limit is not None:
            step.watched += new
        step.at(letters.position, over=letters.last)
        step.pause(gap)

    async def _drive(self, tx: Transaction, operation: StartedOperation, letters: _Letters, step: _Step) -> list[str]:
        tally = Tally(due=True, skipped=letters.gone)
        job_ids = sorted({row["job_id"] for row in letters.rows})
        new: list[str] = []
        if job_ids:
            await tx.rows("lock_jobs", job_ids)
            jobs = await self._specs.read(tx, job_ids)
            alive = [(row, jobs[row["job_id"]]) for row in letters.rows if row["job_id"] in jobs]
            new = await drive_again(tx, alive, await tx.now(), backlog=True, by=operation.by)
            for row in letters.rows:
                if row["job_id"] not in jobs:
                    tally.refuse(row["id"], f"job {row['job_id']} was deleted")
        tally.done = len(new)
        step.count(tally)
        return new

    async def _close(self, tx: Transaction, operation: StartedOperation, letters: _Letters, step: _Step) -> None:
        note = msgspec.convert(operation.params, DiscardParams).note
        await close_letters(tx, [row["id"] for row in letters.rows], note, operation.actor)
        step.count(Tally(done=len(letters.rows), skipped=letters.gone))


class _Letters(msgspec.Struct, frozen=True, kw_only=True):
    """The next dead letters. `gone`: of those that were named, how many are none (any more)."""

    rows: Sequence[Row]
    position: list[int | str] | None
    last: bool
    gone: int = 0


async def _next_letters(tx: Transaction, operation: StartedOperation, most: int) -> _Letters:
    if operation.ids is None:
        place = operation.position or [operation.bound, LAST_ID]
        rows = await dead_letters_after(tx, operation.tenant, operation.filter or BulkFilter(), place, most)
        position = [rows[-1]["failed_at"], rows[-1]["id"]] if rows else operation.position
        return _Letters(rows=rows, position=position, last=len(rows) < most)
    start = 0 if operation.position is None else int(operation.position[0])
    ids = [str(each) for each in operation.ids[start : start + most]]
    rows = await tx.rows("dead_letters_by_id", operation.tenant, ids)
    end = start + len(ids)
    return _Letters(rows=rows, position=[end], last=end >= len(operation.ids), gone=len(ids) - len(rows))


async def _next_jobs(tx: Transaction, operation: StartedOperation, most: int) -> tuple[list[int], int, bool]:
    """The next jobs, below which id to go on, and whether these are the last."""
    below = operation.bound + 1 if operation.position is None else int(operation.position[0])
    if operation.ids is None:
        found = await jobs_below(tx, operation.tenant, operation.filter or BulkFilter(), below, most)
        return found.ids, found.below, found.all_seen
    rest = [int(each) for each in operation.ids if operation.position is None or int(each) < below]
    return rest[:most], rest[:most][-1] if rest else below, len(rest) <= most


class _Step:
    """What the portion makes of the operation's row."""

    def __init__(self, row: Row, operation: StartedOperation, node: str) -> None:
        self.watched = list(operation.watched)
        self.failed_again: int = row["failed_again"]
        self._row = row
        self._operation = operation
        self._node = node
        self._tally = Tally()
        self._position = operation.position
        self._state: BulkState = "running"
        self._reason: str | None = None
        self._wait = 0

    def count(self, tally: Tally) -> None:
        self._tally = tally

    def at(self, position: list[int | str] | list[int] | None, *, over: bool) -> None:
        self._position = None if position is None else [*position]
        if over:
            self._state = "done"

    def stop(self, reason: str) -> None:
        self._state, self._reason = "stopped", reason

    def pause(self, ms: int) -> None:
        self._wait = ms

    @property
    def seen(self) -> int:
        """How many it has met before."""
        return int(self._row["done"] + self._row["failed"] + self._row["skipped"])

    async def look_at_results(self, tx: Transaction) -> None:
        if not self.watched:
            return
        living = {row["id"] for row in await tx.rows("living_runs", self.watched)}
        over = [EndedKey(run, parse_run_id(run)[1]) for run in self.watched if run not in living]
        if over:  # these and no others: whatever ends between the two looks is counted at the next one
            ends = await tx.rows("ends_of_runs", self._operation.tenant, Rows(over))
            self.failed_again += sum(row["status"] == "failed" for row in ends)
        self.watched = [run for run in self.watched if run in living]

    async def write(self, tx: Transaction) -> WorkedOff:
        row, tally, now = self._row, self._tally, await tx.now()
        done, failed = row["done"] + tally.done, row["failed"] + len(tally.refused)
        skipped, over = row["skipped"] + tally.skipped, self._state != "running"
        seen = done + failed + skipped
        exact = bool(row["total_exact"])
        errors: list[BulkError] = [*self._operation.errors, *tally.refused][:ERRORS_KEPT]
        step = OperationStep(
            state=self._state,
            position=None if self._position is None else encode_json(self._position).decode(),
            total=seen
            if self._state == "done" and (not row["by_ids"] or self._operation.by_slot)
            else max(row["total"], seen),
            total_exact=True if self._state == "done" else exact,
            done=done,
            failed=failed,
            skipped=skipped,
            errors=encode_json(errors).decode(),
            watched="[]" if over else encode_json(self.watched).decode(),
            waiting_for=0 if over else len(self.watched),
            failed_again=self.failed_again,
            node=self._node,
            reason=self._reason,
            next_at=now + self._wait,
            updated_at=now,
            finished_at=now if over else None,
        )
        written = await tx.row("advance_operation", row["id"], step)
        assert written is not None
        return WorkedOff(operation=operation_view(written), tenant=row["tenant"], due=tally.due, orders=tally.orders)
