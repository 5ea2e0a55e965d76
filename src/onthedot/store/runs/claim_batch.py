"""What a claim writes beside the claimed rows themselves: one statement per kind of change, however many runs."""

from __future__ import annotations

from typing import Any

from onthedot import telemetry
from onthedot.model.job import JobRecord
from onthedot.model.run import run_id
from onthedot.plan import NOTHING_TAKEN, ClaimPlan, Skipped, Taken, on_claim
from onthedot.store.driver import Row, Rows, Transaction
from onthedot.store.runs.new_runs import new_run
from onthedot.store.runs.terminate import Ending, end_runs

__all__ = ["ClaimBatch"]


class ClaimBatch:
    """Collects decisions, writes them at the end. What is said aloud waits until the transaction is committed."""

    def __init__(self, now: int, lookahead: int, soon: int) -> None:
        """`soon`: within how many ms a run that may be held ahead must be due to be looked for."""
        self.now = now
        self.taken: dict[int, Taken] = {}  # of jobs whose cursor does not stand behind all that has a row
        self._lookahead = lookahead
        self._soon = soon
        self._moved: list[tuple[Any, ...]] = []
        self._deleted: list[str] = []
        self._inserted: list[tuple[Any, ...]] = []
        self._skipped: list[tuple[Any, ...]] = []
        self._advanced: list[tuple[Any, ...]] = []
        self._quarantined: dict[int, tuple[JobRecord, str]] = {}
        self._parked: list[str] = []
        self._ended: list[Ending] = []
        self.soonest: int | None = None  # when to look for the first of the new runs
        self._events: list[tuple[str, dict[str, Any]]] = []

    @property
    def skipped(self) -> int:
        return len(self._skipped) + len(self._ended)

    def plan(self, job: JobRecord, slot: int) -> ClaimPlan:
        return on_claim(job, slot, self.now, self.taken.get(job.id, NOTHING_TAKEN))

    def move(self, row_id: str, new_id: str, slot: int, due: int) -> None:
        self._moved.append((row_id, new_id, slot, due))

    def drop(self, row_id: str) -> None:
        self._deleted.append(row_id)

    def skip(self, job: JobRecord, skipped: Skipped) -> None:
        name = run_id(job.id, skipped.first)
        until = None if skipped.last == skipped.first else skipped.last
        self._skipped.append((name, job.tenant, job.id, skipped.first, until, skipped.slots, skipped.reason, self.now))
        self._events.append(
            ("run.skipped", {"tenant": job.tenant, "job_id": job.id, "reason": skipped.reason, "n": skipped.slots or 0})
        )

    def end(self, row: Row, status: str, reason: str) -> None:
        """A run that is not its job's cursor will not fire either."""
        self._ended.append(Ending(id=row["id"], status=status, reason=reason))
        fields = {"tenant": row["tenant"], "job_id": row["job_id"], "reason": reason, "n": 1}
        self._events.append(("run.skipped", fields))

    def follow(self, job: JobRecord, plan: ClaimPlan) -> None:
        """The job goes on: its successor, what goes to the backlog, what is given up."""
        ended = None if plan.successor is not None else self.now
        self._advanced.append((job.id, plan.claimed_slot, plan.slots_used, ended))
        if plan.successor is not None:
            self._inserted.append(
                new_run(job, plan.successor, self.now, lookahead=self._lookahead, cursor=True, not_before=self.now)
            )
        for place, slot in enumerate(plan.backlog):  # a millisecond apart, so that they run in their order
            self._inserted.append(
                new_run(job, slot, self.now, lookahead=self._lookahead, backlog=True, not_before=self.now + place)
            )
        for skipped in plan.skipped:
            self.skip(job, skipped)

    def quarantine(self, job: JobRecord, row_id: str, error: Exception) -> None:
        """Its schedule can't be computed: the job is parked with the reason, the rest of the batch goes on."""
        self._parked.append(row_id)
        self._condemn(job, f"{type(error).__name__}: {error}"[:1000])

    def _condemn(self, job: JobRecord, reason: str) -> None:
        self._quarantined[job.id] = job, reason.replace("\x00", "")
        self._events.append(("job.quarantined", {"tenant": job.tenant, "job_id": job.id, "reason": reason}))

    async def write_moves(self, tx: Transaction) -> None:
        """Claimed rows get the names of the slots they fire; those that fire none go."""
        if self._moved:
            await tx.execute("move_runs", Rows(self._moved))
        if self._deleted:
            await tx.execute("delete_runs", self._deleted)
        self._moved, self._deleted = [], []

    async def write(self, tx: Transaction, jobs: dict[int, JobRecord]) -> None:
        await self.write_moves(tx)
        if self._inserted:
            self.soonest = min(self._look_at(row) for row in self._inserted)
            await self._insert(tx, jobs)
        if self._skipped:
            there = {row["id"] for row in await tx.rows("skip_slots", Rows(self._skipped))}
            self._alarm(row[0] for row in self._skipped if row[0] not in there)
        if self._advanced:
            await tx.execute("advance_jobs", Rows(sorted(self._advanced)))
        if self._parked:
            await tx.execute("park_cursors", self._parked)
        if self._quarantined:
            rows = [(job_id, reason) for job_id, (_, reason) in sorted(self._quarantined.items())]
            await tx.execute("quarantine_jobs", Rows(rows))
        if self._ended:
            await end_runs(tx, self._ended, self.now, lambda run_id: self._alarm([run_id]))

    def _look_at(self, row: tuple[Any, ...]) -> int:
        """As `peek` says it: what may be held ahead need not be claimed the moment it is ready."""
        due, ready, lane = row[7], row[8], row[14]
        return int(ready if lane is not None else max(ready, due - self._soon))

    async def _insert(self, tx: Transaction, jobs: dict[int, JobRecord]) -> None:
        """A run that exists already would be a slot fired twice. It must not abort the batch, nor pass in silence."""
        there = {row["id"] for row in await tx.rows("insert_runs", Rows(self._inserted))}
        if len(there) == len(self._inserted):
            return
        twice = [row for row in self._inserted if row[0] not in there]
        self._alarm(row[0] for row in twice)
        for row in twice:
            if row[5]:  # the cursor: without it the job would fall silent
                self._condemn(jobs[row[2]], f"the run {row[0]} exists already")

    def _alarm(self, ids: Any) -> None:
        self._events.extend(("ledger.conflict", {"run_id": run}) for run in ids)

    def announce(self) -> None:
        """After the commit: nothing is said that did not happen."""
        for event, fields in self._events:
            telemetry.emit(event, **fields)
