"""What a claim writes beside the claimed rows themselves: one statement per kind of change, however many runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from onthedot import telemetry
from onthedot.errors import NoRoom
from onthedot.model.job import JobRecord, JobSpec
from onthedot.model.run import run_id
from onthedot.plan import NOTHING_TAKEN, ClaimPlan, Skipped, Taken, due_at, on_claim
from onthedot.store.driver import Transaction
from onthedot.store.jobs.rows import AdvancedJob, QuarantinedJob
from onthedot.store.runs.alert_notes import GivenUp, note_given_up
from onthedot.store.runs.row import ClaimedRow, NewRun, scheduled_run
from onthedot.store.runs.terminate import Ending, SkippedSlots, end_runs, skip_slots
from onthedot.store.shapes import Rows, Shape

__all__ = ["ClaimBatch", "Firing"]


class Firing(msgspec.Struct, frozen=True, gc=False):
    """Which slot a claimed cursor fires, after catch-up: its own or a later one, and then the row takes that name."""

    id: str
    slot: int
    due_at: int


class MovedRun(Shape, frozen=True):
    id: str
    new_id: str
    slot: int
    due_at: int


class ClaimBatch:
    """Collects decisions, writes them at the end. What is said aloud waits until the transaction is committed."""

    def __init__(self, now: int, lookahead: int, soon: int, thawed_at: int | None = None) -> None:
        """`soon`: within how many ms a run that may be held ahead must be due to be looked for. `thawed_at`: until when
        all was paused, the last time."""
        self.now = now
        self.taken: dict[int, Taken] = {}  # of jobs whose cursor does not stand behind all that has a row
        self._thawed_at = thawed_at
        self._lookahead = lookahead
        self._soon = soon
        self._moved: list[MovedRun] = []
        self._deleted: list[str] = []
        self._inserted: list[NewRun] = []
        self._skipped: list[SkippedSlots] = []
        self._advanced: list[AdvancedJob] = []
        self._quarantined: dict[int, tuple[JobRecord, str]] = {}
        self._parked: list[str] = []
        self._ended: list[Ending] = []
        self._given_up: list[GivenUp] = []
        self.soonest: int | None = None  # when to look for the first of the new runs
        self.left_alone = False  # there are runs of groups that could not be taken now, and can be in a moment
        self.set_aside = 0  # runs that wait for their group, and take no room
        self._events: list[tuple[str, dict[str, Any]]] = []

    @property
    def skipped(self) -> int:
        return len(self._skipped) + len(self._ended)

    def fire(self, row: ClaimedRow, job: JobRecord) -> Firing | None:
        """A cursor was claimed: its job goes on, and one of the slots that arrived fires, or none."""
        try:
            plan = on_claim(job, row.slot, self.now, self.taken.get(job.id, NOTHING_TAKEN), self._thawed_at)
        except NoRoom:  # not the schedule's fault
            raise
        except Exception as error:  # whatever is wrong with one schedule must not stop the others
            self._parked.append(row.id)
            self._quarantine(job, f"{type(error).__name__}: {error}"[:1000])
            return None
        self._follow(job, plan)
        if plan.fire is None:
            self.drop(row.id)
            return None
        if plan.fire == row.slot:
            return Firing(row.id, row.slot, row.due_at)
        name = run_id(job.id, plan.fire)
        return Firing(name, plan.fire, due_at(plan.fire, name, job.spec.policy.jitter))

    def move(self, row_id: str, firing: Firing) -> None:
        self._moved.append(MovedRun(row_id, firing.id, firing.slot, firing.due_at))

    def drop(self, row_id: str) -> None:
        self._deleted.append(row_id)

    def skip(self, job: JobRecord, skipped: Skipped) -> None:
        self._skipped.append(SkippedSlots.of(job, skipped, self.now))
        self._given_up.append(GivenUp.of(job, skipped))
        self._events.append(
            ("run.skipped", {"tenant": job.tenant, "job_id": job.id, "reason": skipped.reason, "n": skipped.slots or 0})
        )

    def end(self, row: ClaimedRow, status: str, reason: str, spec: JobSpec | None = None) -> None:
        """A run that is not its job's cursor will not fire either. `spec`: of its job, if somebody may want to hear of
        it."""
        if spec is not None:
            self._given_up.append(GivenUp(row.tenant, row.job_id, spec, row.id, reason, 1))
        self._ended.append(Ending(id=row.id, status=status, reason=reason, finished_at=self.now))
        self._events.append(("run.skipped", {"tenant": row.tenant, "job_id": row.job_id, "reason": reason, "n": 1}))

    def _follow(self, job: JobRecord, plan: ClaimPlan) -> None:
        """The job goes on: its successor, what goes to the backlog, what is given up."""
        ended = None if plan.successor is not None else self.now
        self._advanced.append(AdvancedJob(job.id, plan.claimed_slot, plan.slots_used, ended))
        if plan.successor is not None:
            self._insert(job, plan.successor)
        for place, slot in enumerate(plan.backlog):  # a millisecond apart, so that they run in their order
            self._insert(job, slot, cursor=False, backlog=True, not_before=self.now + place)
        for skipped in plan.skipped:
            self.skip(job, skipped)

    def _insert(
        self, job: JobRecord, slot: int, *, cursor: bool = True, backlog: bool = False, not_before: int | None = None
    ) -> None:
        row = scheduled_run(
            job.tenant,
            job.id,
            job.spec,
            slot,
            now=self.now,
            lookahead=self._lookahead,
            parked=job.state == "paused",
            cursor=cursor,
            backlog=backlog,
            not_before=self.now if not_before is None else not_before,
        )
        self._inserted.append(row)

    def _quarantine(self, job: JobRecord, reason: str) -> None:
        """Its schedule can't be computed: the job is parked with the reason, the rest of the batch goes on."""
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
            self.soonest = min(self._look_at(run) for run in self._inserted)
            await self._write_runs(tx, jobs)
        self._alarm(await skip_slots(tx, self._skipped))
        if self._advanced:
            self._advanced.sort(key=lambda job: job.id)
            await tx.execute("advance_jobs", Rows(self._advanced))
        if self._parked:
            await tx.execute("park_cursors", self._parked)
        if self._quarantined:
            rows = [QuarantinedJob(job_id, reason) for job_id, (_, reason) in sorted(self._quarantined.items())]
            await tx.execute("quarantine_jobs", Rows(rows))
        await note_given_up(tx, self._given_up, self.now)
        if self._ended:
            await end_runs(tx, self._ended, lambda run_id: self._alarm([run_id]))

    def _look_at(self, run: NewRun) -> int:
        """As `peek` says it: what may be held ahead need not be claimed the moment it is ready."""
        return run.ready_at if run.lane is not None else max(run.ready_at, run.due_at - self._soon)

    async def _write_runs(self, tx: Transaction, jobs: dict[int, JobRecord]) -> None:
        """A run that exists already would be a slot fired twice. It must not abort the batch, nor pass in silence."""
        there = {row["id"] for row in await tx.rows("insert_runs", Rows(self._inserted))}
        if len(there) == len(self._inserted):
            return
        twice = [run for run in self._inserted if run.id not in there]
        self._alarm(run.id for run in twice)
        for run in twice:
            if run.cursor:  # without it the job would fall silent
                self._quarantine(jobs[run.job_id], f"run {run.id} already exists")

    def _alarm(self, ids: Iterable[str]) -> None:
        self._events.extend(("ledger.conflict", {"run_id": run}) for run in ids)

    def join(self, other: ClaimBatch) -> None:
        """What another batch of the same claim has to say is said with this one's."""
        self._events += other._events
        self._ended += other._ended

    def announce(self) -> None:
        """After the commit: nothing is said that did not happen."""
        for event, fields in self._events:
            telemetry.emit(event, **fields)
