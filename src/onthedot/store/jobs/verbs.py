"""Verbs on one job: change, pause, resume, delete.

Each first takes the job's row (FOR UPDATE on PostgreSQL), then its pending runs, and only then looks at the clock and
decides. A claim that holds the job makes the verb wait; while the verb holds it, claims pass it by. So no claim can put
a successor beside the cursor that an edit sets (without this: two cursors, and a paused job that kept firing).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import NoneType
from typing import TypeVar

import msgspec

from onthedot.errors import Conflict, Invalid, OnTheDotError, VersionMismatch
from onthedot.model.actor import ChangeActor
from onthedot.model.instant import format_instant
from onthedot.model.job import JobSpec, JobView
from onthedot.model.version import ChangeVerb
from onthedot.plan import Change, on_edit, on_pause, on_resume
from onthedot.store.abandoned_requests import acting
from onthedot.store.driver import Collision, Transaction
from onthedot.store.jobs.apply_plan import Locked, apply_change, remove
from onthedot.store.jobs.chains import TenantNotLocked, check_chains, lock_tenants, names_more, refuse_if_named
from onthedot.store.jobs.create import Fresh, NewJob, past, prepare
from onthedot.store.jobs.create_rows import insert_fresh
from onthedot.store.jobs.existing_job import lock_existing, verb_on_job
from onthedot.store.jobs.idempotency import Idempotency, once
from onthedot.store.jobs.rows import keep_owner, keep_secrets
from onthedot.store.jobs.views import read_view
from onthedot.store.runs.verbs import dead_firing, drive_again
from onthedot.store.topic import Topic
from onthedot.timing import check_schedule

__all__ = ["JobChanges", "edit", "pause_change"]

T = TypeVar("T")


class JobChanges(Topic):
    async def update_job(
        self,
        tenant: int,
        job_id: int,
        change: Callable[[JobSpec], JobSpec],
        *,
        verb: ChangeVerb = "edit",
        if_match: int | None = None,
        idempotency: Idempotency | None = None,
    ) -> JobView:
        """Replace the spec by `change(spec)`. An equal spec changes nothing, not even the version."""

        async def body(tx: Transaction, locked: bool) -> JobView:
            async def update() -> None:
                job = await lock_existing(tx, tenant, job_id, if_match)
                await _change_chains(tx, job, spec := change(job.record.spec), locked=locked)
                await edit(tx, job, spec, verb=verb)

            await once(tx, tenant, idempotency, NoneType, update)
            return await read_view(tx, tenant, job_id)

        try:
            return await self._chaining(tenant, body)
        except Collision:  # between our look and our write somebody took the key
            raise Conflict("the key is already used by another job") from None

    async def put_job(
        self,
        tenant: int,
        key: str,
        change: Callable[[JobSpec | None], JobSpec],
        *,
        if_match: int | None = None,
        run_now: bool = False,
        idempotency: Idempotency | None = None,
    ) -> tuple[JobView, bool]:
        """Create or replace the job with this key; True if it was created. `run_now`: and run, if it was."""

        async def body(tx: Transaction, locked: bool) -> tuple[JobView, bool]:
            answers: list[JobView] = []

            async def put() -> tuple[int, bool]:
                row = await tx.row("lock_job_by_key", tenant, key)
                if row is None:
                    new = NewJob(tenant=tenant, spec=change(None), run_now=run_now, by=acting())
                    await _refuse_chains(tx, tenant, new.spec, None, locked=locked)
                    answers.append(await _create_one(tx, new, if_match))
                    return answers[0].id, True
                job = await lock_existing(tx, tenant, row["id"], if_match)
                await _change_chains(tx, job, spec := change(job.record.spec), locked=locked)
                await edit(tx, job, spec)
                return job.record.id, False

            job_id, created = await once(tx, tenant, idempotency, tuple[int, bool], put)
            return answers[0] if answers else await read_view(tx, tenant, job_id), created

        for _ in range(10):  # who loses the race to create finds the winner's job the next time
            with suppress(_CreatedMeanwhile):
                return await self._chaining(tenant, body)
        raise Conflict(f"the job with key {key!r} is being changed concurrently; retry")

    async def pause_job(
        self,
        tenant: int,
        job_id: int,
        *,
        note: str | None = None,
        until: int | None = None,
        if_match: int | None = None,
        idempotency: Idempotency | None = None,
    ) -> JobView:
        """Nothing starts any more but what is run by hand; waiting retries are parked. `until`: then it goes on by
        itself. To pause it again says anew why and until when, if it says either."""

        async def pause(tx: Transaction) -> None:
            job = await lock_existing(tx, tenant, job_id, if_match)
            if until is not None and until <= job.now:
                after = f"a time after {format_instant(job.now)}"
                raise Invalid.one("until", "is in the past", given=format_instant(until), accepted=after)
            change = pause_change(job, note, until)
            if change is not None:
                paused = msgspec.structs.replace(job.record.spec, paused=True)
                await apply_change(tx, job, paused, change, (note, until), verb="pause")

        return await verb_on_job(self, tenant, job_id, idempotency, pause)

    async def resume_job(
        self, tenant: int, job_id: int, *, if_match: int | None = None, idempotency: Idempotency | None = None
    ) -> JobView:
        """Go on with the next slot; those that passed become one row in the ledger."""

        async def resume(tx: Transaction) -> None:
            job = await lock_existing(tx, tenant, job_id, if_match)
            if job.record.state == "paused":
                change = on_resume(job.record, job.cursor_slot, job.now, job.taken)
                resumed = msgspec.structs.replace(job.record.spec, paused=False)
                await apply_change(tx, job, resumed, change, verb="resume")

        return await verb_on_job(self, tenant, job_id, idempotency, resume)

    async def delete_job(
        self, tenant: int, job_id: int, *, if_match: int | None = None, idempotency: Idempotency | None = None
    ) -> None:
        """What waits is cancelled, what executes goes on to its end; the history stays."""

        async def delete(tx: Transaction) -> None:
            job = await lock_existing(tx, tenant, job_id, if_match)
            if (key := job.record.spec.key) is not None:
                await refuse_if_named(tx, tenant, [key], f"delete job {job_id}", but=[job_id])
            await remove(tx, job)

        await self.as_asked(lambda tx: once(tx, tenant, idempotency, NoneType, lambda: delete(tx)))

    async def _chaining(self, tenant: int, body: Callable[[Transaction, bool], Awaitable[T]]) -> T:
        """Whether a change names more jobs than before is known when it is made: then it is made again, with the tenant
        locked before the job."""
        try:
            return await self.as_asked(lambda tx: body(tx, False))
        except TenantNotLocked:
            pass

        async def with_tenant(tx: Transaction) -> T:
            await lock_tenants(tx, [tenant])
            return await body(tx, True)

        return await self.as_asked(with_tenant)


async def _change_chains(tx: Transaction, job: Locked, spec: JobSpec, *, locked: bool) -> None:
    """Whether the job may have this spec, as far as other jobs are concerned."""
    record = job.record
    await _refuse_chains(tx, record.tenant, spec, record.spec, locked=locked)
    if record.spec.key is not None and spec.key != record.spec.key:
        what = f"change the key {record.spec.key!r} of job {record.id}"
        await refuse_if_named(tx, record.tenant, [record.spec.key], what, but=[record.id])


async def _refuse_chains(tx: Transaction, tenant: int, spec: JobSpec, old: JobSpec | None, *, locked: bool) -> None:
    if not names_more(spec, old):
        return
    if not locked:
        raise TenantNotLocked
    for refusal in (await check_chains(tx, tenant, [spec])).values():
        raise refusal


def pause_change(job: Locked, note: str | None, until: int | None) -> Change | None:
    """None: it is paused already, and nothing new is said of why and until when; or there is nothing to pause."""
    change, said = on_pause(job.record, job.cursor_slot), (note, until)
    anew = said not in ((None, None), (job.record.pause_note, job.record.pause_until))
    return change if change.state != job.record.state or (change.state == "paused" and anew) else None


async def edit(
    tx: Transaction,
    job: Locked,
    spec: JobSpec,
    *,
    verb: ChangeVerb = "edit",
    actor: ChangeActor | None = None,
    settle: bool = True,
) -> bool:
    """Give the job this spec; False if it has it already. An update revives ended and quarantined jobs."""
    spec = keep_owner(keep_secrets(spec, job.record.spec), job.record.spec)
    if spec == job.record.spec:
        return False
    if spec.schedule != job.record.spec.schedule:
        check_schedule(spec.schedule, now=job.now)
    if spec.key is not None and spec.key != job.record.spec.key:
        holder = await tx.row("lock_job_by_key", job.record.tenant, spec.key)
        if holder is not None:
            raise Conflict(f"the key {spec.key!r} is already used by job {holder['id']}")
    letter = await dead_firing(tx, job.record) if job.record.state == "ended" else None
    change = on_edit(job.record, job.cursor_slot, spec, job.now, job.taken, dead=letter is not None)
    await apply_change(tx, job, spec, change, verb=verb, actor=actor, settle=settle)
    if letter is not None and change.driven:
        revived = msgspec.structs.replace(job.record, spec=spec, state=change.state)
        await drive_again(tx, [(letter, revived)], job.now, backlog=False, by=actor)
    return True


class _CreatedMeanwhile(Exception):
    """Somebody else just created it. Raised, so that nothing of this transaction stays."""


async def _create_one(tx: Transaction, new: NewJob, if_match: int | None) -> JobView:
    if if_match is not None:
        raise VersionMismatch(f"job with key {new.spec.key!r} not found, so it has no version that If-Match could name")
    now = await tx.now()
    (planned,) = await prepare(tx, [new], now)
    if isinstance(planned, OnTheDotError):
        raise planned
    assert isinstance(planned, Fresh)
    if (refusal := past(planned, now)) is not None:
        raise refusal
    if await insert_fresh(tx, [planned], now):
        raise _CreatedMeanwhile
    return planned.view(now)
