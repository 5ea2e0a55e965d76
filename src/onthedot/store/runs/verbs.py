"""Verbs on single runs: cancel, try again, drive dead letters again."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any

from onthedot.errors import Conflict, VersionMismatch
from onthedot.model.actor import ChangeActor
from onthedot.model.decoding import encode_json
from onthedot.model.job import JobRecord
from onthedot.model.run import RunView, run_id
from onthedot.plan import Change, on_cancel, only_slot
from onthedot.store.abandoned_requests import acting
from onthedot.store.driver import Driver, Row, Transaction
from onthedot.store.jobs.apply_plan import Locked, lock, refuse_other_version, refuse_quarantined
from onthedot.store.jobs.audit_log import write_audit
from onthedot.store.jobs.idempotency import Idempotency, once
from onthedot.store.jobs.rows import AdvancedJob
from onthedot.store.jobs.sequences import take_run_numbers
from onthedot.store.runs.actors import note_actors
from onthedot.store.runs.callbacks import cancel_open
from onthedot.store.runs.dead_letters import ALL_LETTERS, LetterFilter, letter_parts
from onthedot.store.runs.lists import no_run, read_run
from onthedot.store.runs.orders import CANCEL, StopOrder, order_stop
from onthedot.store.runs.row import CALLBACK, add_runs, new_run, parse_run_id, scheduled_run
from onthedot.store.runs.spec_cache import SpecCache
from onthedot.store.runs.terminate import Ending, end_runs
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = ["RunChanges", "dead_firing", "drive_again", "go_on"]


class EndedKey(Shape, frozen=True):
    """Where the ledger has a run."""

    id: str
    slot: int


class DrivenRun(Shape, frozen=True):
    """A new run, and the one that it drives again."""

    id: str
    former: str


class RunChanges(Topic):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._driven = SpecCache()

    async def cancel_run(
        self, tenant: int, run_id: str, *, if_match: int | None = None, idempotency: Idempotency | None = None
    ) -> RunView:
        """A run that waits, also for its callback, is cancelled at once; one that a node has, by an order to it."""
        job_id, _ = parse_run_id(run_id)

        async def cancel(tx: Transaction) -> None:
            job = await lock(tx, tenant, job_id)  # like every verb: the job before its runs
            _refuse_other_version(job, job_id, if_match)
            row = await tx.row("lock_run", run_id, tenant)
            if row is None:
                ended = await read_run(tx, tenant, run_id)
                raise Conflict(f"run {run_id} has already ended: {ended.status}")
            if row["open"] == CALLBACK:
                await cancel_open(tx, run_id, dialect=self.driver.dialect)
            elif row["state"] == "running":
                await order_stop(tx, [StopOrder(run_id, CANCEL)])
            else:
                now = await tx.now() if job is None else job.now
                if row["cursor"] and job is not None:
                    refuse_quarantined(job)
                ending = Ending(id=run_id, status="cancelled", reason="cancelled", finished_at=now)
                await end_runs(tx, [ending])
                if row["cursor"] and job is not None:
                    await go_on(tx, job, on_cancel(job.record, row["slot"], job.taken))
            at, record = (await tx.now(), None) if job is None else (job.now, job.record)
            await write_audit(tx, "cancel", tenant, at, job=record, job_id=job_id, run_id=run_id)

        async def body(tx: Transaction) -> RunView:
            await once(tx, tenant, idempotency, NoneType, lambda: cancel(tx))
            return await read_run(tx, tenant, run_id)

        return await self.as_asked(body)

    async def retry_run(
        self,
        tenant: int,
        run_id: str,
        *,
        params: dict[str, Any] | None = None,
        if_match: int | None = None,
        idempotency: Idempotency | None = None,
    ) -> RunView:
        """A new run of the same slot; a terminal run never changes. `params`: its own, instead of those it had."""
        job_id, slot = parse_run_id(run_id)

        async def retry(tx: Transaction) -> RunView:
            if if_match is not None:
                _refuse_other_version(await lock(tx, tenant, job_id), job_id, if_match)
            ended = await tx.rows("ended_runs", tenant, Rows([EndedKey(run_id, slot)]))
            if not ended:
                live = await read_run(tx, tenant, run_id)
                raise Conflict(f"run {run_id} has not ended yet: {live.status}")
            new = await self._drive(tx, ended, own_params=params is not None)
            if not new:
                raise no_run(run_id, "its job was deleted")
            (again,) = new
            if params is not None:
                await tx.execute("replace_params", again, tenant, encode_json(params).decode(), await tx.now())
            said = f"tries {run_id} again"
            await write_audit(tx, "retry", tenant, await tx.now(), job_id=job_id, run_id=again, summary=said)
            return await read_run(tx, tenant, again)

        return await self.as_asked(lambda tx: once(tx, tenant, idempotency, RunView, lambda: retry(tx)))

    async def redrive(
        self,
        tenant: int,
        wanted: LetterFilter = ALL_LETTERS,
        *,
        limit: int = 1000,
        idempotency: Idempotency | None = None,
    ) -> list[str]:
        """New runs for these dead letters; newest first, at most `limit`. Their ids."""
        where, args = letter_parts(wanted)

        async def drive(tx: Transaction) -> list[str]:
            new = await self._drive(tx, await tx.rows(f"take_dead{where}", tenant, limit, *args))
            if new:
                run, said = (new[0], None) if len(new) == 1 else (None, f"{len(new)} dead letters")
                await write_audit(tx, "redrive", tenant, await tx.now(), job_id=wanted.job_id, run_id=run, summary=said)
            return new

        return await self.as_asked(lambda tx: once(tx, tenant, idempotency, list[str], lambda: drive(tx)))

    async def _drive(self, tx: Transaction, ended: Sequence[Row], *, own_params: bool = False) -> list[str]:
        """Into the backlog lane: a thousand runs that failed must not delay those that are on time."""
        if not ended:
            return []
        job_ids = sorted({row["job_id"] for row in ended})
        await tx.rows("lock_jobs", job_ids)
        jobs = await self._driven.read(tx, job_ids)
        alive = [(row, jobs[row["job_id"]]) for row in ended if row["job_id"] in jobs]
        return await drive_again(tx, alive, await tx.now(), backlog=True, own_params=own_params)


def _refuse_other_version(job: Locked | None, job_id: int, if_match: int | None) -> None:
    """Of a run it is the job's version that is named."""
    if job is not None:
        refuse_other_version(job, if_match)
    elif if_match is not None:
        raise VersionMismatch(f"job {job_id} was deleted, so it has no version that If-Match could name")


async def go_on(tx: Transaction, job: Locked, change: Change) -> None:
    """A slot was taken from the job. If that was its cursor, its next slot gets a run, or the job has ended."""
    record = job.record
    ended_at = job.now if change.state == "ended" else None
    advanced = AdvancedJob(record.id, change.claimed_slot, change.slots_used, ended_at)
    await tx.execute("advance_jobs", Rows([advanced]))
    if change.moved and change.cursor_slot is not None:
        cursor = scheduled_run(
            record.tenant,
            record.id,
            record.spec,
            change.cursor_slot,
            now=job.now,
            lookahead=tx.lookahead,
            parked=record.state == "paused",
            not_before=job.now,
        )
        await add_runs(tx, [cursor])
    elif change.moved:
        await tx.execute("release_runs", record.id, job.now)  # nobody can resume it any more: waiting retries go on


async def dead_firing(tx: Transaction, job: JobRecord) -> Row | None:
    """The open dead letter of a one-off's own firing. A run by hand that failed is none: it has another slot."""
    if not job.spec.schedule.one_off or (slot := only_slot(job)) is None:
        return None
    own = run_id(job.id, slot)
    for row in await tx.rows("take_dead+where.dead_job", job.tenant, 100, job.id):
        if row["id"] == own or row["id"].startswith(f"{own}-r"):
            return row
    return None


async def drive_again(
    tx: Transaction,
    ended: Sequence[tuple[Row, JobRecord]],
    now: int,
    *,
    backlog: bool,
    own_params: bool = False,
    by: ChangeActor | None = None,
) -> list[str]:
    """New runs of the same slots for these ended ones, because a terminal run never changes. Under their jobs' locks.
    Their ids. `by`: who asked for that, if not who asks now."""
    numbers = await take_run_numbers(tx, len(ended))
    runs = [
        new_run(
            job.tenant,
            job.id,
            job.spec,
            row["slot"],
            "redrive",
            now=now,
            due=now,
            ready=now,
            n=n,
            parked=job.state == "paused",
            backlog=backlog,
            parent=row["id"],
            own_params=own_params,
        )
        for (row, job), n in zip(ended, numbers, strict=True)
    ]
    if runs:
        await add_runs(tx, runs)
        await note_actors(tx, runs, by or acting())
        await tx.execute("copy_params", now, Rows([DrivenRun(run.id, run.parent or "") for run in runs]))
        await tx.execute("delete_dead", [row["id"] for row, _ in ended])
    return [run.id for run in runs]
