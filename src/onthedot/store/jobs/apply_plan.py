"""Carrying out what `plan` decided for a job: its row, its cursor, its waiting runs, what nodes hold ahead."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.errors import Conflict, VersionMismatch
from onthedot.model.actor import ChangeActor
from onthedot.model.group import membership
from onthedot.model.instant import format_instant
from onthedot.model.job import JobRecord, JobSpec
from onthedot.model.level import level_of
from onthedot.model.version import ChangeVerb
from onthedot.plan import (
    FIRINGS,
    NOTHING_TAKEN,
    Change,
    Skipped,
    Taken,
    floor_ahead,
    laned,
    on_delete,
    timetable_of,
    what_is_left,
)
from onthedot.store.abandoned_requests import acting
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.audit_log import changed_fields, write_audit
from onthedot.store.jobs.chains import write_chains
from onthedot.store.jobs.close_one_offs import is_over, note_endings
from onthedot.store.jobs.floors import correct, find_correction
from onthedot.store.jobs.rows import ChangedJob, job_record, spec_columns, tags_of
from onthedot.store.jobs.taken_slots import may_be_taken, taken_after
from onthedot.store.jobs.versions import write_version
from onthedot.store.runs.alert_notes import GivenUp, note_given_up
from onthedot.store.runs.groups import call_next
from onthedot.store.runs.row import add_runs, lane_of, scheduled_run
from onthedot.store.runs.terminate import Ending, SkippedSlots, end_runs, skip_slots
from onthedot.store.shapes import Rows

__all__ = [
    "Locked",
    "apply_change",
    "groups_of",
    "lock",
    "refuse_other_version",
    "refuse_quarantined",
    "remove",
]


class Locked(msgspec.Struct, frozen=True, kw_only=True):
    """A job that nobody else can change or claim for now, with its pending runs."""

    record: JobRecord
    pending: Sequence[Row]
    now: int
    taken: Taken = NOTHING_TAKEN  # slots after the cursor that have a row already
    set_back: bool = False  # it stood in a future that has not come

    @property
    def cursor_slot(self) -> int | None:
        return next((row["slot"] for row in self.pending if row["cursor"]), None)


async def lock(tx: Transaction, tenant: int, job_id: int) -> Locked | None:
    """Whatever becomes of a job begins here. One that a clock which was ahead carried into the future goes on now."""
    job = await _locked(tx, tenant, job_id)
    if job is None or not floor_ahead(job.record, job.now, tx.lookahead):
        return job
    correction = await find_correction(tx, job.record, job.cursor_slot, job.now)
    if correction is None:
        return job
    await correct(tx, job.record, correction, job.now)
    after = await _locked(tx, tenant, job_id)
    return None if after is None else msgspec.structs.replace(after, set_back=True)


async def _locked(tx: Transaction, tenant: int, job_id: int) -> Locked | None:
    """The job's row, then its runs, then the time: waiting for a lock must not make `now` old."""
    row = await tx.row("lock_job", tenant, job_id)
    if row is None:
        return None
    runs = await tx.rows("lock_runs", tenant, job_id)
    record = job_record(row)
    if is_over(record, scheduled=any(run["kind"] in FIRINGS for run in runs)):
        record = msgspec.structs.replace(record, state="ended")
    pending = [run for run in runs if run["state"] == "pending"]
    return await _with_taken(tx, Locked(record=record, pending=pending, now=await tx.now()))


async def _with_taken(tx: Transaction, job: Locked) -> Locked:
    """A one-off's claim does not touch its job: whether its slot has a row is always looked up."""
    cursor, after = job.cursor_slot, job.now
    if cursor is not None:
        after = min(after, cursor)
    if not job.record.spec.schedule.one_off and not may_be_taken(job.record, after):
        return job
    return msgspec.structs.replace(job, taken=await taken_after(tx, job.record.id, after))


def refuse_quarantined(job: Locked) -> None:
    """Its schedule can't be computed: nothing is made of it, and nothing follows a slot of it, before it is changed."""
    if job.record.state == "quarantined":
        raise Conflict(f"job {job.record.id} is quarantined ({job.record.reason}); change the job first")


def refuse_other_version(job: Locked, if_match: int | None) -> None:
    if if_match is not None and job.record.version != if_match:
        # 0 stands for a tag that no job ever has
        named = f", not {if_match}; read it again" if if_match else "; If-Match names another version"
        raise VersionMismatch(f"job {job.record.id} is at version {job.record.version}{named}")


async def apply_change(
    tx: Transaction,
    job: Locked,
    spec: JobSpec,
    change: Change,
    pause: tuple[str | None, int | None] | None = None,
    *,
    verb: ChangeVerb = "edit",
    actor: ChangeActor | None = None,
    audited: bool = True,
    settle: bool = True,
) -> None:
    """`pause`: why and until when, if that is said anew. `actor`: who does it, if not who asks. Not `audited`: it is
    part of what is written down as a whole. Not `settle`: see `groups_of`."""
    await _write_job(tx, job, spec, change, pause)
    await write_version(tx, job.record, spec, verb, actor or acting(), job.now)
    if audited:
        await _write_down(tx, job, spec, pause, verb, actor or acting())
    await _write_skipped(tx, job, change.skipped)
    await _cancel_strays(tx, job, spec, change)
    await _set_cursor(tx, job, spec, change)
    await _refit_runs(tx, job, spec)
    if change.parked:
        await tx.execute("park_runs", job.record.id)
    elif change.state in ("active", "ended"):  # ended: what was begun before still goes to its end
        await tx.execute("release_runs", job.record.id, job.now)
    await tx.execute("recall_runs", job.record.id)
    if settle:
        await call_next(tx, groups_of(job, spec))


async def _write_down(
    tx: Transaction,
    job: Locked,
    spec: JobSpec,
    pause: tuple[str | None, int | None] | None,
    verb: ChangeVerb,
    actor: ChangeActor,
) -> None:
    """Who changed what."""
    record, now = job.record, job.now
    if actor.kind == "system" or verb == "create":
        return
    if verb == "pause":
        note, until = pause or (None, None)
        parts = [note, None if until is None else f"until {format_instant(until)}"]
        said = "; ".join(part for part in parts if part) or None
    else:
        said = None if verb == "resume" else changed_fields(record.spec, spec)
    await write_audit(tx, verb, record.tenant, now, job=record, changed=True, summary=said, actor=actor)


def groups_of(job: Locked, spec: JobSpec | None = None) -> set[str]:
    """The concurrency groups that a change concerns: there may be room in one, or more of it. Whoever changes several
    jobs calls the next ones of all of them at the end (see `runs.groups`)."""
    record = job.record
    specs = [record.spec] if spec is None else [record.spec, spec]
    found = [membership(record.tenant, record.id, each.policy) for each in specs if laned(each.policy)]
    return {group.key for group in found if group is not None}


async def remove(tx: Transaction, job: Locked, *, actor: ChangeActor | None = None, settle: bool = True) -> None:
    """The job goes, its ledger stays; for a while it can come back. What executes finds its end without the job."""
    await write_audit(tx, "delete", job.record.tenant, job.now, job=job.record, actor=actor)
    tenant, job_id = job.record.tenant, job.record.id
    await _cancel(tx, job, [row["id"] for row in job.pending], "deleted")
    await _write_skipped(tx, job, on_delete(job.record, job.cursor_slot, job.now, job.taken))
    await tx.execute("recall_runs", job_id)
    await tx.execute("delete_tags", job_id)
    if job.record.spec.chained:
        await tx.execute("delete_chains", [job_id])
    await _keep(tx, job)
    await tx.execute("delete_job_dead_letters", job_id)
    await tx.execute("delete_job", tenant, job_id)
    if settle:
        await call_next(tx, groups_of(job))


async def _keep(tx: Transaction, job: Locked) -> None:
    """For a while it can come back (see `jobs.undelete`). Its statistics stay where they are until then."""
    record = job.record
    left = what_is_left(record, job.cursor_slot, job.now, job.taken)
    kept = (left.claimed_slot, left.slots_used, left.cursor_slot, job.now)
    await tx.execute("keep_deleted", record.tenant, record.id, *kept)
    await tx.execute("keep_dead_letters", record.id)


async def _write_job(
    tx: Transaction, job: Locked, spec: JobSpec, change: Change, pause: tuple[str | None, int | None] | None
) -> None:
    record, paused_at, note, until = job.record, None, None, None
    if change.state == "paused":
        was = record.state == "paused"
        paused_at = record.paused_at if was else job.now
        note, until = pause or ((record.pause_note, record.pause_until) if was else (None, None))
    changed = ChangedJob(
        **spec_columns(spec),
        state=change.state,
        anchor_at=change.anchor_at,
        claimed_slot=change.claimed_slot,
        slots_used=change.slots_used,
        paused_at=paused_at,
        reason=record.reason if change.state == "quarantined" else None,
        pause_note=note,
        pause_until=until,
        updated_at=job.now,
    )
    await tx.execute("update_job", record.tenant, record.id, changed)
    if spec.tags != record.spec.tags:
        await tx.execute("delete_tags", record.id)
        if spec.tags:
            await tx.execute("insert_tags", Rows(tags_of(record.tenant, record.id, spec)))
    if spec.chained or record.spec.chained:
        await write_chains(tx, record, spec)


async def _write_skipped(tx: Transaction, job: Locked, gaps: Sequence[Skipped]) -> None:
    if any(gap.reason == "late" for gap in gaps) and await tx.row("current_freeze") is not None:
        gaps = [msgspec.structs.replace(gap, reason="paused") if gap.reason == "late" else gap for gap in gaps]
    await skip_slots(tx, [SkippedSlots.of(job.record, gap, job.now) for gap in gaps])
    await note_given_up(tx, [GivenUp.of(job.record, gap) for gap in gaps], job.now)


async def _cancel_strays(tx: Transaction, job: Locked, spec: JobSpec, change: Change) -> None:
    """Runs that a node held ahead and gave back are no cursor; what the new schedule lacks never fires."""
    untried = [row for row in job.pending if not row["cursor"] and row["kind"] == "scheduled" and not row["tries"]]
    if untried and spec.schedule != job.record.spec.schedule:
        times = timetable_of(spec, change.anchor_at)
        await _cancel(tx, job, [row["id"] for row in untried if not times.is_slot(row["slot"])], "rescheduled")


async def _cancel(tx: Transaction, job: Locked, ids: Sequence[str], reason: str) -> None:
    """Pending runs, which are locked."""
    if ids:
        endings = [Ending(id=run, status="cancelled", reason=reason, finished_at=job.now) for run in ids]
        await end_runs(tx, endings, settle=False)


async def _set_cursor(tx: Transaction, job: Locked, spec: JobSpec, change: Change) -> None:
    """Where it stays, it still may be due at another instant: jitter and overlap decide that."""
    record = job.record
    if change.moved:
        await tx.execute("drop_cursor", record.id)
    if change.cursor_slot is None:
        if spec.schedule.one_off and change.state != "ended":  # its only slot was fired before it became one
            await note_endings(tx, [record.id], job.now)
        return
    cursor = scheduled_run(
        record.tenant,
        record.id,
        spec,
        change.cursor_slot,
        now=job.now,
        lookahead=tx.lookahead,
        parked=change.parked,
    )
    if change.moved or job.cursor_slot is None:
        await add_runs(tx, [cursor])
    else:
        ready = max(cursor.ready_at, job.now)
        await tx.execute("move_cursor", record.id, cursor.due_at, ready, cursor.parked, cursor.resume_at)


async def _refit_runs(tx: Transaction, job: Locked, spec: JobSpec) -> None:
    """Each attempt uses the job's present target, so waiting runs need a node that offers that, with its labels."""
    old, needed = job.record.spec, spec.requirement()
    if (old.target, old.policy, old.schedule, old.requirement()) == (spec.target, spec.policy, spec.schedule, needed):
        return
    job_id, once = job.record.id, spec.policy.delivery == "at_most_once"
    await tx.execute("refit_runs", job_id, needed, level_of(spec), once, not spec.schedule.one_off)
    await tx.execute("relane_runs", job_id, lane_of(job_id, spec), job.now)
    before, group = (membership(job.record.tenant, job_id, each.policy) for each in (old, spec))
    if before is not None or group is not None:
        key, limit = (None, None) if group is None else (group.key, group.limit)
        await tx.execute("regroup_runs", job_id, key, limit, job.now)
