"""What an operation does to the jobs of one portion, in the transaction that moves it on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from onthedot.errors import Conflict, Invalid
from onthedot.model.actor import ChangeActor
from onthedot.model.bulk import BackfillParams, BulkError, BulkVerb, PauseParams, RunParams, TagParams
from onthedot.model.decoding import encode_json
from onthedot.model.instant import parse_rfc3339
from onthedot.model.job import JobSpec
from onthedot.plan import on_resume
from onthedot.store.bulk.change_many import ChangeOfJob, change_many, lock_many, retag_many, slots_may_be_taken
from onthedot.store.driver import Transaction
from onthedot.store.jobs.apply_plan import Locked, apply_change, groups_of, lock, refuse_quarantined, remove
from onthedot.store.jobs.chains import refuse_if_named
from onthedot.store.jobs.rows import job_record
from onthedot.store.jobs.sequences import take_run_numbers
from onthedot.store.jobs.verbs import pause_change
from onthedot.store.runs.actors import note_actors
from onthedot.store.runs.groups import call_next
from onthedot.store.runs.manual import fill_slots
from onthedot.store.runs.row import add_runs, new_run
from onthedot.store.shapes import Rows, Shape

__all__ = ["PORTIONS", "Tally", "apply_to_jobs"]

PORTIONS: dict[BulkVerb, int] = {"pause": 100, "resume": 100, "tag": 100, "run": 100, "delete": 50, "backfill": 10}
"""Jobs in one transaction: those whose verb takes each job by itself are fewer. Reading or writing the rows of 200 jobs
keeps the loop for 1.4 ms, and calls that are due meanwhile are late; of 100 jobs 0.9 ms, for a quarter more of CPU."""

SLOTS_MOST = 1000  # of one job, that are backfilled
TAGS_MOST = 50


class GivenParams(Shape, frozen=True):
    run_id: str
    tenant: int
    params: str
    created_at: int


class SaidBy(msgspec.Struct, frozen=True):
    """What was said with the verb, and by whom."""

    params: dict[str, Any]
    actor: ChangeActor


class Tally(msgspec.Struct, kw_only=True):
    """What became of a portion. `due`, `orders`: what nodes are to be told when it is committed."""

    done: int = 0
    skipped: int = 0
    refused: list[BulkError] = msgspec.field(default_factory=list)
    due: bool = False
    orders: bool = False

    def refuse(self, job_id: int | str, why: str) -> None:
        self.refused.append(BulkError(id=job_id, error=why))


async def apply_to_jobs(
    tx: Transaction, verb: BulkVerb, tenant: int, ids: Sequence[int], params: dict[str, Any], actor: ChangeActor
) -> Tally:
    """Jobs that refuse are counted with their reason; they stop nobody else."""
    tally = Tally()
    if ids:
        await _VERBS[verb](tx, tenant, ids, SaidBy(params, actor), tally)
    return tally


async def _pause(tx: Transaction, tenant: int, ids: Sequence[int], said_by: SaidBy, tally: Tally) -> None:
    said = msgspec.convert(said_by.params, PauseParams)
    until = None if said.until is None else parse_rfc3339(said.until)
    jobs, others = await lock_many(tx, tenant, ids)
    changes = []
    for each in jobs:
        change = pause_change(each.job, said.note, until)
        if change is None:
            tally.skipped += 1
            continue
        spec = _paused(each.job, paused=True)
        changes.append(ChangeOfJob(of=each, spec=spec, change=change, pause=(said.note, until)))
    await change_many(tx, changes, "pause", said_by.actor)
    tally.done += len(changes)
    for job_id in others:
        job = await lock(tx, tenant, job_id)
        change = None if job is None else pause_change(job, said.note, until)
        if job is None or change is None:
            tally.skipped += 1
            continue
        paused = _paused(job, paused=True)
        await apply_change(
            tx, job, paused, change, (said.note, until), verb="pause", actor=said_by.actor, audited=False
        )
        tally.done += 1
    _missing(ids, [*(each.job.record.id for each in jobs), *others], tally)
    tally.orders = True


async def _resume(tx: Transaction, tenant: int, ids: Sequence[int], said_by: SaidBy, tally: Tally) -> None:
    jobs, others = await lock_many(tx, tenant, ids)
    changes = []
    for each in jobs:
        record = each.job.record
        if record.state != "paused":
            tally.skipped += 1
        elif slots_may_be_taken(each.job):
            others.append(record.id)
        else:
            await tx.breathe()
            change = on_resume(record, each.job.cursor_slot, each.job.now)
            changes.append(ChangeOfJob(of=each, spec=_paused(each.job, paused=False), change=change))
    await change_many(tx, changes, "resume", said_by.actor)
    tally.done += len(changes)
    for job_id in others:
        job = await lock(tx, tenant, job_id)
        if job is None or job.record.state != "paused":
            tally.skipped += 1
            continue
        change = on_resume(job.record, job.cursor_slot, job.now, job.taken)
        await apply_change(
            tx, job, _paused(job, paused=False), change, verb="resume", actor=said_by.actor, audited=False
        )
        tally.done += 1
    _missing(ids, {*(each.job.record.id for each in jobs), *others}, tally)
    tally.due = tally.orders = True


async def _tag(tx: Transaction, tenant: int, ids: Sequence[int], said_by: SaidBy, tally: Tally) -> None:
    """An ended job stays ended: nothing else of it changes."""
    said = msgspec.convert(said_by.params, TagParams)
    now = await tx.now()
    rows = await tx.rows("lock_whole_jobs", tenant, list(ids))
    changes = []
    for row in rows:
        job = Locked(record=job_record(row), pending=(), now=now)
        kept = [tag for tag in job.record.spec.tags if tag not in said.remove]
        tags = list(dict.fromkeys([*kept, *said.add]))
        if tags == job.record.spec.tags:
            tally.skipped += 1
        elif len(tags) > TAGS_MOST:
            tally.refuse(row["id"], f"a job has at most {TAGS_MOST} tags")
        else:
            changes.append((job, msgspec.structs.replace(job.record.spec, tags=tags)))
    await retag_many(tx, changes, said_by.actor)
    tally.done += len(changes)
    _missing(ids, [row["id"] for row in rows], tally)


async def _run(tx: Transaction, tenant: int, ids: Sequence[int], said_by: SaidBy, tally: Tally) -> None:
    own = msgspec.convert(said_by.params, RunParams).params
    rows = await tx.rows("lock_whole_jobs", tenant, list(ids))
    now, runs = await tx.now(), []
    for row, n in zip(rows, await take_run_numbers(tx, len(rows)), strict=True):
        record = job_record(row)
        if record.state == "quarantined":
            tally.refuse(record.id, f"job {record.id} is quarantined ({record.reason}); change the job first")
            continue
        runs.append(
            new_run(
                tenant,
                record.id,
                record.spec,
                now,
                "manual",
                now=now,
                due=now,
                ready=now,
                n=n,
                own_params=own is not None,
            )
        )
    if runs:
        await add_runs(tx, runs)
        await note_actors(tx, runs, said_by.actor)
        if own is not None:
            text = encode_json(own).decode()
            await tx.execute("give_params", Rows([GivenParams(run.id, tenant, text, now) for run in runs]))
    tally.done += len(runs)
    _missing(ids, [row["id"] for row in rows], tally)
    tally.due = True


async def _delete(tx: Transaction, tenant: int, ids: Sequence[int], said_by: SaidBy, tally: Tally) -> None:
    groups: set[str] = set()
    for job_id in sorted(ids):
        job = await lock(tx, tenant, job_id)
        if job is None:
            _missing([job_id], [], tally)
            continue
        try:
            if (key := job.record.spec.key) is not None:
                await refuse_if_named(tx, tenant, [key], f"delete job {job_id}", but=[job_id])
        except Conflict as conflict:
            tally.refuse(job_id, str(conflict))
            continue
        await remove(tx, job, settle=False)
        groups |= groups_of(job)
        tally.done += 1
    await call_next(tx, groups)
    tally.orders = True


async def _backfill(tx: Transaction, tenant: int, ids: Sequence[int], said_by: SaidBy, tally: Tally) -> None:
    said = msgspec.convert(said_by.params, BackfillParams)
    start, end = parse_rfc3339(said.start) or 0, parse_rfc3339(said.end) or 0
    for job_id in sorted(ids):
        job = await lock(tx, tenant, job_id)
        if job is None:
            _missing([job_id], [], tally)
            continue
        try:
            refuse_quarantined(job)
            made = await fill_slots(tx, job, start, end, SLOTS_MOST, said_by.actor, force=said.force)
        except (Conflict, Invalid) as refused:  # before anything was written
            tally.refuse(job_id, str(refused))
            continue
        if made:
            tally.done += 1
        else:
            tally.skipped += 1
    tally.due = True


def _paused(job: Locked, *, paused: bool) -> JobSpec:
    return msgspec.structs.replace(job.record.spec, paused=paused)


def _missing(ids: Sequence[int], found: Sequence[int] | set[int], tally: Tally) -> None:
    for job_id in sorted(set(ids) - set(found)):
        tally.refuse(job_id, f"job {job_id} not found")


_Verb = Callable[[Transaction, int, Sequence[int], SaidBy, Tally], Awaitable[None]]
_VERBS: dict[BulkVerb, _Verb] = {
    "pause": _pause,
    "resume": _resume,
    "tag": _tag,
    "run": _run,
    "delete": _delete,
    "backfill": _backfill,
}
