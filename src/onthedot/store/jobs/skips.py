"""Slots that users leave out: each has its row in the ledger before its time comes; until then it can be taken back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.errors import Conflict, Invalid
from onthedot.model.actor import ChangeActor
from onthedot.model.instant import format_instant
from onthedot.model.job import JobRecord, JobView
from onthedot.model.run import run_id
from onthedot.plan import Skipped, Taken, is_coming, nearest_coming, on_skip, on_unskip
from onthedot.store.abandoned_requests import acting
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.apply_plan import Locked
from onthedot.store.jobs.audit_log import write_audit
from onthedot.store.jobs.existing_job import lock_existing, verb_on_job
from onthedot.store.jobs.idempotency import Idempotency
from onthedot.store.jobs.rows import job_record
from onthedot.store.jobs.taken_slots import taken_after
from onthedot.store.jobs.views import no_job
from onthedot.store.runs.row import add_runs, scheduled_run
from onthedot.store.runs.terminate import Ending, SkippedSlots, end_runs, skip_slots
from onthedot.store.runs.verbs import go_on
from onthedot.store.topic import Topic

__all__ = ["JobAhead", "SkippedByUser", "Skips"]

SHOWN = 100
"""Slots left out that are told of a job at once."""


class SkippedByUser(msgspec.Struct, frozen=True, kw_only=True):
    """What the ledger says of a slot that a user left out, beside its times."""

    kind: str = "skipped"
    actor: str
    actor_kind: str


class JobAhead(msgspec.Struct, frozen=True, kw_only=True):
    """What it takes to say when a job will fire; `skipped`: rows of the slots to come that users left out."""

    record: JobRecord
    cursor_slot: int | None
    taken: Taken
    now: int
    skipped: Sequence[Row]


class Skips(Topic):
    async def skip_slot(
        self,
        tenant: int,
        job_id: int,
        slot: int,
        *,
        if_match: int | None = None,
        idempotency: Idempotency | None = None,
    ) -> JobView:
        """The job will not fire at this slot, which has not come yet. One that is left out already stays so."""

        async def skip(tx: Transaction) -> None:
            job = await lock_existing(tx, tenant, job_id, if_match, quarantined=False)
            if not await _is_left_out(tx, job, slot):
                await _leave_out(tx, job, slot, acting())

        return await verb_on_job(self, tenant, job_id, idempotency, skip)

    async def unskip_slot(
        self,
        tenant: int,
        job_id: int,
        slot: int,
        *,
        if_match: int | None = None,
        idempotency: Idempotency | None = None,
    ) -> JobView:
        """The job fires at this slot after all: it was left out, and has not come yet."""

        async def unskip(tx: Transaction) -> None:
            await _take_back(tx, await lock_existing(tx, tenant, job_id, if_match, quarantined=False), slot)

        return await verb_on_job(self, tenant, job_id, idempotency, unskip)

    async def job_ahead(self, tenant: int, job_id: int) -> JobAhead:
        async def body(tx: Transaction) -> JobAhead:
            row, cursor = await tx.row("find_job", tenant, job_id), await tx.row("cursor_slot", tenant, job_id)
            if row is None:
                raise no_job(job_id)
            now, slot = await tx.now(), None if cursor is None else int(cursor["slot"])
            return JobAhead(
                record=job_record(row),
                cursor_slot=slot,
                taken=await taken_after(tx, job_id, now if slot is None else min(now, slot)),
                now=now,
                skipped=await tx.rows("slots_left_out", job_id, now, SHOWN),
            )

        return await self.driver.read(body, snapshot=True)


async def _is_left_out(tx: Transaction, job: Locked, slot: int) -> bool:
    """Whether a user did so before. What has another row already can't be left out any more."""
    if slot <= job.now or not job.taken.covering(slot):
        return False
    name = run_id(job.record.id, slot)
    row = await tx.row("decided_slot", job.record.tenant, slot, name)
    if row is None:
        raise Conflict(f"a node already has run {name} of this slot; cancel the run instead")
    if row["reason"] != "skipped":
        raise Conflict(f"this slot is already decided: run {name} is {row['status'].upper()}")
    return True


async def _leave_out(tx: Transaction, job: Locked, slot: int, actor: ChangeActor) -> None:
    record, cursor = job.record, job.cursor_slot
    if cursor is None or not is_coming(record, cursor, slot, job.now, job.taken):
        raise _not_coming(job, slot)
    if slot == cursor:
        ending = Ending(id=run_id(record.id, slot), status="skipped", reason="skipped", finished_at=job.now)
        await end_runs(tx, [ending])
    else:
        gap = Skipped(first=slot, last=slot, slots=1, reason="skipped")
        await skip_slots(tx, [SkippedSlots.of(record, gap, job.now)])
    said = msgspec.json.encode(SkippedByUser(actor=actor.name, actor_kind=actor.kind)).decode()
    await tx.execute("say_who_skipped", record.tenant, slot, run_id(record.id, slot), said)
    await go_on(tx, job, on_skip(record, cursor, slot, job.taken))
    name = run_id(record.id, slot)
    await write_audit(tx, "skip", record.tenant, job.now, job=record, run_id=name, summary=format_instant(slot))


async def _take_back(tx: Transaction, job: Locked, slot: int) -> None:
    record, name = job.record, run_id(job.record.id, slot)
    row = await tx.row("decided_slot", record.tenant, slot, name)
    if row is None or row["reason"] != "skipped":
        raise Conflict("this slot is not skipped")
    if slot <= job.now:
        raise Conflict("this slot has passed; to run it after all: backfill it, or retry the skipped run")
    change = on_unskip(record, job.cursor_slot, slot, row["finished_at"])
    if change is None:
        raise Conflict("the job does not have this slot any more")
    await tx.execute("take_back_skipped", record.tenant, slot, name)
    await tx.execute("set_back_job", record.id, change.state, change.slots_used)
    await write_audit(tx, "unskip", record.tenant, job.now, job=record, run_id=name, summary=format_instant(slot))
    if not change.moved:
        return
    await tx.execute("drop_cursor", record.id)
    cursor = scheduled_run(
        record.tenant,
        record.id,
        record.spec,
        slot,
        now=job.now,
        lookahead=tx.lookahead,
        parked=change.parked,
        not_before=job.now,
    )
    await add_runs(tx, [cursor])
    if row["token"]:
        await tx.execute("set_token", cursor.id, row["token"])


def _not_coming(job: Locked, slot: int) -> Invalid:
    near = nearest_coming(job.record, job.cursor_slot, slot, job.now, job.taken)
    accepted = "a slot of the schedule that has not come yet"
    if near:
        accepted += ", such as " + " or ".join(format_instant(each) for each in near)
    elif job.record.state == "ended":
        accepted += "; the job has ended"
    message = "has passed" if slot <= job.now else "is not a coming slot of the job"
    return Invalid.one("slot", message, given=format_instant(slot), accepted=accepted)
