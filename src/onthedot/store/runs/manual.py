"""Runs that a person asks for beside the schedule: one now, or the slots that were missed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from onthedot.errors import Invalid
from onthedot.model.actor import ChangeActor
from onthedot.model.decoding import encode_json
from onthedot.model.instant import format_instant
from onthedot.model.job import JobRecord
from onthedot.model.run import RunView, run_id, trigger_of
from onthedot.plan import timetable_of
from onthedot.store.abandoned_requests import acting
from onthedot.store.driver import Transaction
from onthedot.store.jobs.apply_plan import Locked
from onthedot.store.jobs.audit_log import write_audit
from onthedot.store.jobs.existing_job import lock_existing
from onthedot.store.jobs.idempotency import Idempotency, once
from onthedot.store.jobs.sequences import take_run_numbers
from onthedot.store.runs.actors import note_actors
from onthedot.store.runs.row import add_runs, new_run
from onthedot.store.topic import Topic

__all__ = ["ManualRuns", "add_slots", "fill_slots", "slots_from"]


class ManualRuns(Topic):
    async def run_job(
        self,
        tenant: int,
        job_id: int,
        *,
        params: dict[str, Any] | None = None,
        if_match: int | None = None,
        idempotency: Idempotency | None = None,
    ) -> RunView:
        """One run now, beside the schedule: also of a paused or ended job. `params`: its own, over those of the job."""

        async def run(tx: Transaction) -> RunView:
            job = await lock_existing(tx, tenant, job_id, if_match, quarantined=False)
            (n,) = await take_run_numbers(tx, 1)
            now, own = job.now, params is not None
            spec = job.record.spec
            new = new_run(tenant, job_id, spec, now, "manual", now=now, due=now, ready=now, n=n, own_params=own)
            await add_runs(tx, [new])
            await note_actors(tx, [new], by := acting())
            if own:
                await tx.execute("add_params", new.id, tenant, encode_json(params).decode(), now)
            said = "with other params" if own else None
            await write_audit(tx, "run", tenant, now, job=job.record, run_id=new.id, summary=said)
            return _view(job.record, n, now, params, by)

        return await self.as_asked(lambda tx: once(tx, tenant, idempotency, RunView, lambda: run(tx)))

    async def backfill_job(
        self,
        tenant: int,
        job_id: int,
        *,
        start: int,
        end: int,
        force: bool = False,
        limit: int = 1000,
        if_match: int | None = None,
        idempotency: Idempotency | None = None,
    ) -> list[str]:
        """Run the slots from `start` to `end` that lie before the next one; those already done only with `force`.
        They go into the backlog lane: what is on time is never delayed by them. The ids of the new runs."""

        async def fill(tx: Transaction) -> list[str]:
            job = await lock_existing(tx, tenant, job_id, if_match, quarantined=False)
            made = await fill_slots(tx, job, start, end, limit, acting(), force=force)
            if made:
                said = f"{len(made)} runs, {format_instant(start)} to {format_instant(end)}"
                await write_audit(tx, "backfill", tenant, job.now, job=job.record, summary=said)
            return made

        return await self.as_asked(lambda tx: once(tx, tenant, idempotency, list[str], lambda: fill(tx)))

    async def slots_to_backfill(
        self, tenant: int, job_id: int, *, start: int, end: int, force: bool = False, limit: int = 1000
    ) -> list[int]:
        """The slots that `backfill_job` would run. Changes nothing."""

        async def look(tx: Transaction) -> list[int]:
            job = await lock_existing(tx, tenant, job_id, quarantined=False)
            return await _to_fill(tx, job, start, end, limit, force=force)

        return await self.driver.transact_slow(look)


async def fill_slots(
    tx: Transaction, job: Locked, start: int, end: int, limit: int, by: ChangeActor, *, force: bool
) -> list[str]:
    """Runs for the slots from `start` to `end` that lie before the next one. Their ids."""
    return await add_slots(tx, job, await _to_fill(tx, job, start, end, limit, force=force), by)


async def add_slots(tx: Transaction, job: Locked, slots: Sequence[int], by: ChangeActor) -> list[str]:
    """A run for each of these slots, in the backlog lane. Their ids."""
    numbers = await take_run_numbers(tx, len(slots))
    parked = job.record.state == "paused"
    runs = [
        new_run(
            job.record.tenant,
            job.record.id,
            job.record.spec,
            slot,
            "backfill",
            now=job.now,
            due=job.now,
            ready=job.now + place,  # a millisecond apart, so that they run in their order
            n=n,
            parked=parked,
            backlog=True,
        )
        for place, (slot, n) in enumerate(zip(slots, numbers, strict=True))
    ]
    if runs:
        await add_runs(tx, runs)
        await note_actors(tx, runs, by)
    return [run.id for run in runs]


async def _to_fill(tx: Transaction, job: Locked, start: int, end: int, limit: int, *, force: bool) -> list[int]:
    return await _without_taken(tx, job, _slots(job, start, end, limit), force=force)


async def slots_from(
    tx: Transaction, job: Locked, start: int, end: int, most: int, *, force: bool
) -> tuple[list[int], int | None]:
    """Of the next `most` slots those to fill, and from where on to go on; None: these were the last."""
    looked_at = list(islice(_past_slots(job, start, end), most))
    after = None if len(looked_at) < most else looked_at[-1] + 1
    return await _without_taken(tx, job, looked_at, force=force), after


async def _without_taken(tx: Transaction, job: Locked, slots: list[int], *, force: bool) -> list[int]:
    """Without those that are done or under way, unless these are wanted too."""
    if force or not slots:
        return slots
    first, last = min(slots), max(slots)
    taken = await tx.rows("slots_taken", job.record.tenant, job.record.id, first, last)
    return sorted(set(slots) - {row["slot"] for row in taken})


def _slots(job: Locked, start: int, end: int, limit: int) -> list[int]:
    slots = list(islice(_past_slots(job, start, end), limit + 1))
    if len(slots) > limit:
        raise Invalid.one(
            "end",
            f"the range has more than {limit} slots",
            given=format_instant(end),
            accepted=f"at most {format_instant(slots[-2])} with this start",
        )
    return slots


def _past_slots(job: Locked, start: int, end: int) -> Iterator[int]:
    """Slots in [start, end] before the cursor; the cursor and what comes after it will fire by themselves."""
    last = min(end, job.now)
    if job.cursor_slot is not None:
        last = min(last, job.cursor_slot - 1)
    times = timetable_of(job.record.spec, job.record.anchor_at)
    slot = times.next_after(start - 1)
    while slot is not None and slot <= last:
        yield slot
        slot = times.next_after(slot)


def _view(job: JobRecord, n: int, now: int, params: dict[str, Any] | None, by: ChangeActor) -> RunView:
    return RunView(
        id=run_id(job.id, now, "manual", n),
        job_id=job.id,
        key=job.spec.key,
        kind="manual",
        scheduled_for=format_instant(now),
        due_at=format_instant(now),
        status="PENDING",
        reason=None,
        attempt=0,
        tries=0,
        losses=0,
        node=None,
        started_at=None,
        finished_at=None,
        lateness_ms=None,
        duration_ms=None,
        outcome=None,
        error=None,
        attempts=[],
        params=params,
        trigger=trigger_of("manual", None, None if by.kind == "system" else by.name),
    )
