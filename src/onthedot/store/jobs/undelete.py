"""Jobs that were deleted: for ten minutes they can come back, with their id, key, version, history and statistics.

Nothing fires meanwhile: a deleted job is in no table that anybody claims, lists or reads from. The transaction that
deletes a job keeps its row apart; the one that brings it back moves it, and a duty removes what nobody wanted back.
"""

from __future__ import annotations

from onthedot.errors import Conflict, NotFound, VersionMismatch
from onthedot.model.duration import MINUTE
from onthedot.model.job import JobRecord, JobView
from onthedot.model.run import run_id
from onthedot.plan import Change, on_undelete, only_slot
from onthedot.store.driver import Collision, Row, Transaction
from onthedot.store.jobs.audit_log import write_audit
from onthedot.store.jobs.chains import chain_rows, check_chains, lock_tenants
from onthedot.store.jobs.close_one_offs import note_endings
from onthedot.store.jobs.idempotency import Idempotency, once
from onthedot.store.jobs.rows import job_record, tags_of
from onthedot.store.jobs.taken_slots import taken_after
from onthedot.store.jobs.views import no_job, read_view
from onthedot.store.runs.row import add_runs, scheduled_run
from onthedot.store.runs.terminate import SkippedSlots, skip_slots
from onthedot.store.shapes import Rows
from onthedot.store.topic import Topic

__all__ = ["UNDELETE_WITHIN", "DeletedJobs", "forget_deleted"]

UNDELETE_WITHIN = 10 * MINUTE


class DeletedJobs(Topic):
    async def undelete_job(
        self,
        tenant: int,
        job_id: int,
        *,
        versions: frozenset[int] | None = None,
        idempotency: Idempotency | None = None,
    ) -> JobView:
        """The job comes back as it was; slots that passed meanwhile are one row of the ledger. NotFound if it was
        deleted too long ago, Conflict if it is there, or can't be there again (its key is taken, say)."""

        async def body(tx: Transaction) -> JobView:
            async def bring_back() -> int:
                await _bring_back(tx, tenant, job_id, versions)
                return job_id

            await once(tx, tenant, idempotency, int, bring_back)
            return await read_view(tx, tenant, job_id)

        try:
            return await self.as_asked(body)
        except Collision:  # between our look and our write somebody took the key
            raise Conflict(f"the key of job {job_id} is used by another job now") from None

    async def deleted_by_key(self, tenant: int, key: str) -> int:
        """The job with this key that was deleted last."""
        row = await self.driver.read(lambda tx: tx.row("find_deleted_by_key", tenant, key))
        if row is None:
            raise NotFound(f"no job with key {key!r} was deleted in the last 10 minutes")
        return int(row["id"])


async def _bring_back(tx: Transaction, tenant: int, job_id: int, versions: frozenset[int] | None) -> None:
    row = await _find(tx, tenant, job_id)
    job = job_record(row)
    if versions is not None and job.version not in versions:
        raise VersionMismatch(f"job {job_id} had version {job.version} when it was deleted")
    await _refuse_conflicts(tx, job)
    await tx.execute("undelete_job", job_id)
    now = await tx.now()
    slot, token = await _next_slot(tx, job, row["cursor_slot"])
    after = now if slot is None else min(now, slot)
    change = on_undelete(job, slot, now, await taken_after(tx, job_id, after))
    await tx.execute("settle_undeleted", job_id, change.state, change.claimed_slot, change.slots_used, now)
    await skip_slots(tx, [SkippedSlots.of(job, gap, now) for gap in change.skipped])
    await _set_cursor(tx, job, change, now, token if change.cursor_slot == slot else 0)
    if job.spec.tags:
        await tx.execute("insert_tags", Rows(tags_of(tenant, job_id, job.spec)))
    if job.spec.chained:
        await tx.execute("insert_chains", Rows(chain_rows(tenant, job_id, job.spec)))
    await tx.execute("undelete_dead_letters", job_id)
    await tx.execute("forget_dead_letters", [job_id])
    await tx.execute("forget_deleted", [job_id])
    await write_audit(tx, "undelete", tenant, now, job=job)


async def _find(tx: Transaction, tenant: int, job_id: int) -> Row:
    """Whoever needs the tenant, too, takes it first: a job that names others is looked at again under its lock."""
    row = await tx.row("lock_deleted", tenant, job_id)
    if row is None and await tx.row("find_job", tenant, job_id) is not None:
        raise Conflict(f"job {job_id} is not deleted")
    if row is None:
        raise NotFound(f"{no_job(job_id)}; a deleted job can be brought back for 10 minutes")
    if row["deleted_at"] < await tx.now() - UNDELETE_WITHIN:
        raise NotFound(f"job {job_id} was deleted more than 10 minutes ago and can't be brought back")
    return row


async def _refuse_conflicts(tx: Transaction, job: JobRecord) -> None:
    """What the job relies on may have gone or been taken meanwhile."""
    spec, back = job.spec, f"job {job.id} can't be brought back"
    if spec.key is not None:
        holder = await tx.row("lock_job_by_key", job.tenant, spec.key)
        if holder is not None:
            raise Conflict(f"{back}: its key {spec.key!r} is used by job {holder['id']} now")
    if spec.chained:
        await lock_tenants(tx, [job.tenant])
        for refusal in (await check_chains(tx, job.tenant, [spec])).values():
            named = "; ".join(f"{each.path}: {each.message} ({each.given!r})" for each in refusal.problems)
            raise Conflict(f"{back}: {named}")
    if scripts := list(spec.target.scripts()):
        there = {row["id"] for row in await tx.rows("find_scripts", job.tenant, scripts)}
        if missing := sorted({*scripts} - there):
            raise Conflict(f"{back}: script {missing[0]} was deleted; upload it again first")


async def _next_slot(tx: Transaction, job: JobRecord, left: int | None) -> tuple[int | None, int]:
    """The slot that was next, with its token. It was cancelled with the job and is to come after all; so is the only
    slot of a one-off that a node held ahead and gave back without the job."""
    slot = only_slot(job) if left is None and job.spec.schedule.one_off and job.state == "active" else left
    if slot is None:
        return None, 0
    row = await tx.row("take_back_cancelled", job.tenant, slot, run_id(job.id, slot))
    if row is None:
        return left, 0
    return slot, int(row["token"])


async def _set_cursor(tx: Transaction, job: JobRecord, change: Change, now: int, token: int) -> None:
    if change.cursor_slot is None:
        if job.spec.schedule.one_off and change.state != "ended":  # its run is under way, or ended meanwhile
            await note_endings(tx, [job.id], now)
        return
    cursor = scheduled_run(
        job.tenant,
        job.id,
        job.spec,
        change.cursor_slot,
        now=now,
        lookahead=tx.lookahead,
        parked=change.state != "active",
        not_before=now,
    )
    await add_runs(tx, [cursor])
    if token:
        await tx.execute("set_token", cursor.id, token)


async def forget_deleted(tx: Transaction, before: int, limit: int) -> int:
    """What is left of jobs that were deleted before then goes, but for their ledger. How many jobs."""
    gone = [row["id"] for row in await tx.rows("take_forgotten", before, limit)]
    if gone:
        for statement in ("forget_dead_letters", "forget_stats", "forget_pings", "delete_versions", "forget_deleted"):
            await tx.execute(statement, gone)
    return len(gone)
