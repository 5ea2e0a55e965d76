"""Pausing, resuming and tagging many jobs by a few statements: what `jobs.apply_plan` does for one. Each job of a
portion by itself took 2.5 ms of round trips, a hundred thousand of them four minutes.

Only changes after which a job has the schedule, target and policy that it had. What is not plain (a job that a clock
which was ahead carried into the future, slots that are taken, very many runs) is left to the verb for one.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.model.actor import ChangeActor
from onthedot.model.decoding import encode_json
from onthedot.model.job import JobSpec, JobState
from onthedot.model.version import ChangeVerb
from onthedot.plan import FIRINGS, Change, floor_ahead
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.apply_plan import Locked, groups_of
from onthedot.store.jobs.close_one_offs import is_over, note_endings
from onthedot.store.jobs.rows import job_record, tags_of
from onthedot.store.jobs.taken_slots import may_be_taken
from onthedot.store.jobs.versions import write_versions
from onthedot.store.runs.groups import call_next
from onthedot.store.runs.row import add_runs, scheduled_run
from onthedot.store.runs.terminate import SkippedSlots, skip_slots
from onthedot.store.shapes import Rows, Shape

__all__ = ["ChangeOfJob", "OneOfMany", "change_many", "lock_many", "retag_many", "slots_may_be_taken"]

RUNS_MOST = 100
"""Runs of a job that are read with those of others."""

BREATHE = 10
"""Jobs that are computed in one go."""


class StateOfJob(Shape, frozen=True, kw_only=True):
    """What a verb for many makes of one of them."""

    id: int
    spec: str
    state: JobState
    anchor_at: int
    claimed_slot: int | None
    slots_used: int
    paused_at: int | None
    reason: str | None
    pause_note: str | None
    pause_until: int | None
    updated_at: int


class MovedCursor(Shape, frozen=True):
    id: str
    due_at: int
    ready_at: int
    parked: str | None
    resume_at: int | None


class OneOfMany(msgspec.Struct, frozen=True, kw_only=True):
    """A locked job. `held`: those of its runs that a node has, and that was not told anything about them yet."""

    job: Locked
    held: Sequence[str]


class ChangeOfJob(msgspec.Struct, frozen=True, kw_only=True):
    """`pause`: why and until when, if that is said anew."""

    of: OneOfMany
    spec: JobSpec
    change: Change
    pause: tuple[str | None, int | None] | None = None

    @property
    def job(self) -> Locked:
        return self.of.job


async def lock_many(tx: Transaction, tenant: int, ids: Sequence[int]) -> tuple[list[OneOfMany], list[int]]:
    """The jobs and all their runs, and then the time. Beside them those that are not plain."""
    rows = await tx.rows("lock_whole_jobs", tenant, list(ids))
    runs: dict[int, list[Row]] = {}
    for run in await tx.rows("lock_runs_of_jobs", [row["id"] for row in rows], RUNS_MOST + 1):
        runs.setdefault(run["job_id"], []).append(run)
    now = await tx.now()
    plain: list[OneOfMany] = []
    others: list[int] = []
    for place, row in enumerate(rows):
        if not place % BREATHE:
            await tx.breathe()
        own = runs.get(row["id"], [])
        record = job_record(row)
        if is_over(record, scheduled=any(run["kind"] in FIRINGS for run in own)):
            record = msgspec.structs.replace(record, state="ended")
        if len(own) > RUNS_MOST or floor_ahead(record, now, tx.lookahead):
            others.append(record.id)
        else:
            pending = [run for run in own if run["state"] == "pending"]
            held = [run["id"] for run in own if run["node"] is not None and run["orders"] is None]
            plain.append(OneOfMany(job=Locked(record=record, pending=pending, now=now), held=held))
    return plain, others


def slots_may_be_taken(job: Locked) -> bool:
    """Then what comes after its cursor has to be looked up."""
    after = job.now if job.cursor_slot is None else min(job.now, job.cursor_slot)
    return not job.record.spec.schedule.one_off and may_be_taken(job.record, after)


async def change_many(tx: Transaction, changes: Sequence[ChangeOfJob], verb: ChangeVerb, actor: ChangeActor) -> None:
    """What `plan` decided for jobs of `lock_many`."""
    if not changes:
        return
    now = changes[0].job.now
    await _write_jobs(tx, changes)
    await write_versions(tx, [(each.job.record, each.spec) for each in changes], verb, actor, now)
    await skip_slots(
        tx, [SkippedSlots.of(each.job.record, gap, now) for each in changes for gap in each.change.skipped]
    )
    await _set_cursors(tx, changes)
    waiting = [
        (run, each.change)
        for each in changes
        for run in each.job.pending
        if not run["cursor"] or _stays(run, each.change)
    ]
    parked = [run["id"] for run, change in waiting if change.parked and _parks(run)]
    if parked:
        await tx.execute("park_by_id", parked)
    released = [run["id"] for run, change in waiting if not change.parked and _releases(run, change)]
    if released:
        await tx.execute("release_by_id", released, now)
    recalled = [run for each in changes for run in each.of.held]
    if recalled:
        await tx.execute("recall_by_id", recalled)
    await call_next(tx, set().union(*(groups_of(each.job, each.spec) for each in changes)))


def _stays(cursor: Row, change: Change) -> bool:
    """It is parked or let go like any other run: its instant is the same, and so is when it may be claimed."""
    stands = not change.moved and change.cursor_slot is not None
    return bool(stands and cursor["parked"] == (None if change.parked else "paused"))


def _parks(run: Row) -> bool:
    return bool(run["kind"] != "manual" and run["parked"] != "paused")


def _releases(run: Row, change: Change) -> bool:
    return change.state in ("active", "ended") and run["parked"] in ("paused", "quarantined")


async def _write_jobs(tx: Transaction, changes: Sequence[ChangeOfJob]) -> None:
    rows = []
    for place, each in enumerate(changes):
        if not place % BREATHE:
            await tx.breathe()
        record, change, paused_at, note, until = each.job.record, each.change, None, None, None
        if change.state == "paused":
            was = record.state == "paused"
            paused_at = record.paused_at if was else each.job.now
            note, until = each.pause or ((record.pause_note, record.pause_until) if was else (None, None))
        rows.append(
            StateOfJob(
                id=record.id,
                spec=encode_json(each.spec).decode(),
                state=change.state,
                anchor_at=change.anchor_at,
                claimed_slot=change.claimed_slot,
                slots_used=change.slots_used,
                paused_at=paused_at,
                reason=record.reason if change.state == "quarantined" else None,
                pause_note=note,
                pause_until=until,
                updated_at=each.job.now,
            )
        )
    await tx.execute("change_states", Rows(rows))


async def _set_cursors(tx: Transaction, changes: Sequence[ChangeOfJob]) -> None:
    dropped: list[str] = []
    added, moved = [], []
    over: list[int] = []
    for place, each in enumerate(changes):
        if not place % BREATHE:
            await tx.breathe()
        record, change = each.job.record, each.change
        cursor_row = next((run for run in each.job.pending if run["cursor"]), None)
        if cursor_row is not None and _stays(cursor_row, change):
            continue
        old = None if cursor_row is None else cursor_row["id"]
        if change.moved and old is not None:
            dropped.append(old)
        if change.cursor_slot is None:
            if each.spec.schedule.one_off and change.state != "ended":
                over.append(record.id)
            continue
        cursor = scheduled_run(
            record.tenant,
            record.id,
            each.spec,
            change.cursor_slot,
            now=each.job.now,
            lookahead=tx.lookahead,
            parked=change.parked,
        )
        if change.moved or old is None:
            added.append(cursor)
        else:
            ready = max(cursor.ready_at, each.job.now)
            moved.append(MovedCursor(old, cursor.due_at, ready, cursor.parked, cursor.resume_at))
    if dropped:
        await tx.execute("delete_runs", dropped)
    if added:
        await add_runs(tx, added)
    if moved:
        await tx.execute("move_cursors", Rows(moved))
    await note_endings(tx, over, changes[0].job.now)


async def retag_many(tx: Transaction, changes: Sequence[tuple[Locked, JobSpec]], actor: ChangeActor) -> None:
    """Their runs have nothing to do with it."""
    if not changes:
        return
    rows = [
        StateOfJob(
            id=(record := job.record).id,
            spec=encode_json(spec).decode(),
            state=record.state,
            anchor_at=record.anchor_at,
            claimed_slot=record.claimed_slot,
            slots_used=record.slots_used,
            paused_at=record.paused_at,
            reason=record.reason,
            pause_note=record.pause_note,
            pause_until=record.pause_until,
            updated_at=job.now,
        )
        for job, spec in changes
    ]
    await tx.execute("change_states", Rows(rows))
    await write_versions(tx, [(job.record, spec) for job, spec in changes], "edit", actor, changes[0][0].now)
    await tx.execute("prune_tags", [job.record.id for job, _ in changes])
    tags = [tag for job, spec in changes for tag in tags_of(job.record.tenant, job.record.id, spec)]
    if tags:
        await tx.execute("insert_tags", Rows(tags))
