"""A database that was restored from a copy is in the past: what came due since may have been fired by the one that was
lost. Nothing of that fires again by itself; all of it is told.

Recurring jobs go on with the first slot after now, the slots before it are one row of the ledger. Everything else that
waited or ran is a dead letter whose outcome nobody knows, and can be driven again. Paused jobs stay as they are.
Alerts that had not been delivered are about the past, too, and the lost store may have sent them: they are not sent.
Incidents stay open until they are found to be over, and nodes of before are nobody's loss.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.errors import NoRoom, StoreInUse
from onthedot.model.instant import format_instant
from onthedot.plan.cursor import after_gap
from onthedot.store.driver import Driver, Row, Transaction
from onthedot.store.jobs.apply_plan import Locked, lock
from onthedot.store.moving.move import SILENT_MS
from onthedot.store.runs.finish_rows import DeadLetter
from onthedot.store.runs.row import add_runs, scheduled_run
from onthedot.store.runs.terminate import Ending, SkippedSlots, end_runs, skip_slots
from onthedot.store.shapes import Rows

__all__ = ["BACKUP", "GAP", "SettledPast", "leave_gap", "settle_past"]

GAP = 1_000_000
"""Numbers left out, as after a failover: the lost database may have given them."""
BACKUP = "backup"
"""The row of `installation` that says when a copy was made."""
AT_ONCE = 200
REASON = "restored"


class SettledPast(msgspec.Struct, kw_only=True):
    jobs: int = 0  # recurring ones whose slots since the copy are skipped
    skipped: int = 0
    dead_letters: int = 0
    notes: int = 0  # what ended runs should still have caused
    operations: int = 0
    alerts: int = 0  # messages that had not been delivered


async def leave_gap(driver: Driver) -> None:
    """Job ids, and so the ids of runs by which receivers know a repeat, are not given twice."""

    async def body(tx: Transaction) -> None:
        for row in await tx.rows("last_numbers"):
            if row["name"] in ("job_ids", "run_numbers"):
                await tx.rows("raise_sequence", row["name"], row["last"] + GAP)
            elif row["name"] in ("tenants", "api_keys", "operations"):
                await tx.rows("raise_identity", row["name"], row["last"] + GAP)

    await driver.transact_slow(body)


async def settle_past(driver: Driver, copied_at: int | None) -> SettledPast:
    """Carried out job by job; to do it again changes no more than what has become due meanwhile."""
    live = [row["name"] for row in await driver.read(lambda tx: tx.rows("beating_nodes", SILENT_MS))]
    if live:
        raise StoreInUse(f"the store is in use by {', '.join(live)}. Stop all nodes first")
    when = "" if copied_at is None else f" of {format_instant(copied_at)}"
    error = f"the store was restored from a backup{when}; whether this run was carried out after that is unknown"
    settled, after = SettledPast(), 0
    while jobs := await driver.read(_stale(after)):
        for row in jobs:
            after = row["job_id"]
            await driver.transact_slow(_settling(row["tenant"], after, error, settled))

    async def rest(tx: Transaction) -> None:
        await tx.execute("drop_all_sessions")
        await tx.execute("drop_all_live_logs")
        await tx.execute("forget_nodes")
        await tx.execute("put_off_repeats")
        settled.alerts = await tx.execute(
            "drop_waiting_alerts", f"not sent: the store was restored from a backup{when}"
        )
        settled.notes = await tx.execute("drop_all_notes")
        settled.operations = await tx.execute("stop_operations", "the store was restored")

    await driver.transact_slow(rest)
    return settled


def _stale(after: int):  # type: ignore[no-untyped-def]
    async def body(tx: Transaction) -> Sequence[Row]:
        return await tx.rows("stale_jobs", after, await tx.now(), AT_ONCE)

    return body


def _settling(tenant: int, job_id: int, error: str, settled: SettledPast):  # type: ignore[no-untyped-def]
    async def body(tx: Transaction) -> None:
        job = await lock(tx, tenant, job_id)
        now = await tx.now() if job is None else job.now
        stale = await tx.rows("stale_runs", job_id, now)
        waits = job is not None and job.record.state in ("paused", "quarantined")
        moved = 0
        if job is not None and job.record.state == "active" and not job.record.spec.schedule.one_off:
            moved = await _go_on(tx, job)
        over = [
            row
            for row in stale
            if row["state"] == "running"
            or not (waits or (row["cursor"] and job is not None and not job.record.spec.schedule.one_off))
        ]
        if over:
            await end_runs(tx, [Ending(id=row["id"], status="failed", reason=REASON, finished_at=now) for row in over])
            await tx.execute("tell_restored", job_id, error)
            letters = [
                DeadLetter(row["id"], row["tenant"], job_id, row["slot"], now, "restored from a backup") for row in over
            ]
            await tx.execute("add_dead_letters", Rows(letters))
        settled.jobs += moved > 0
        settled.skipped += moved
        settled.dead_letters += len(over)

    return body


async def _go_on(tx: Transaction, job: Locked) -> int:
    """With the first slot after now. How many are left out."""
    record = job.record
    if job.cursor_slot is None or job.cursor_slot > job.now:
        return 0
    try:
        change = after_gap(record, job.cursor_slot, job.now, job.taken, reason="restored")
    except NoRoom:  # not the schedule's fault
        raise
    except Exception:  # its schedule can't be computed: the claim will meet that and quarantine the job
        return 0
    await skip_slots(tx, [SkippedSlots.of(record, gap, job.now) for gap in change.skipped])
    await tx.execute("drop_cursor", record.id)
    await tx.execute("settle_job", record.id, change.state, change.claimed_slot, change.slots_used)
    if change.cursor_slot is not None:
        slot, ahead = change.cursor_slot, tx.lookahead
        run = scheduled_run(record.tenant, record.id, record.spec, slot, now=job.now, lookahead=ahead, parked=False)
        await add_runs(tx, [run])
    return sum(gap.slots or 1 for gap in change.skipped)
