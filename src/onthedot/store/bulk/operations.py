"""Bulk operations: started, counted, listed, paused, resumed, aborted, and worked off in portions.

A portion is one transaction: it locks the operation's row, applies the verb to the next few and moves the position and
the counters. So whoever dies between two portions neither loses nor repeats one, and of two nodes that look at the same
moment one gets the row and the other passes it by. Any node works on any operation.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot import telemetry
from onthedot.errors import Conflict, StoreUnavailable
from onthedot.model.audit_entry import AuditVerb
from onthedot.model.bulk import (
    DEAD_VERBS,
    MOST_COUNTED,
    BackfillParams,
    BulkCount,
    BulkFilter,
    BulkItem,
    BulkOperation,
    BulkRequest,
    BulkState,
)
from onthedot.model.decoding import encode_json
from onthedot.model.instant import NEVER, parse_rfc3339
from onthedot.store.bulk.portion import BulkPortion, WorkedOff
from onthedot.store.bulk.rows import NewOperation, no_operation, operation_view
from onthedot.store.bulk.selection import jobs_below, letters_of
from onthedot.store.driver import Driver, Transaction
from onthedot.store.jobs.apply_plan import lock, refuse_quarantined
from onthedot.store.jobs.audit_log import write_audit
from onthedot.store.jobs.idempotency import Idempotency, once
from onthedot.store.jobs.views import no_job
from onthedot.store.paging import Page, check_limit, fingerprint, open_cursor, seal_cursor
from onthedot.store.runs.manual import slots_from
from onthedot.store.runs.spec_cache import SpecCache
from onthedot.store.topic import Topic

__all__ = ["BulkOperations"]

SAMPLE = 10
SQLITE_SHARE = 5
"""SQLite has one writer at a time: there a portion is so many times smaller."""


class BulkOperations(Topic):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._redriven = SpecCache()
        self._careful: dict[int, int] = {}  # operations of which a portion failed: so many are done one by one

    async def count_operation(self, tenant: int, asked: BulkRequest) -> BulkCount:
        """What it would be for. Changes nothing."""

        total, exact, sample = await self._counted(tenant, asked)
        return BulkCount(verb=asked.verb, total=total, total_exact=exact, sample=sample)

    async def _counted(self, tenant: int, asked: BulkRequest) -> tuple[int, bool, list[BulkItem]]:
        if (asked.params or {}).get("by_slot"):
            return await self.driver.transact_slow(lambda tx: _count_slots(tx, tenant, asked))
        return await self.driver.read(lambda tx: _count(tx, tenant, asked))

    async def start_operation(
        self, tenant: int, asked: BulkRequest, *, actor: str | None, idempotency: Idempotency | None = None
    ) -> BulkOperation:
        """It begins with what is there now: jobs that are made later, and letters of later failures, are left out."""
        total, exact, _ = await self._counted(tenant, asked)  # in nobody's way

        async def start(tx: Transaction) -> BulkOperation:
            now, newest = await tx.now(), await tx.row("newest_job")
            assert newest is not None
            ids = None if asked.ids is None else sorted(set(asked.ids), key=str, reverse=True)
            if ids is not None and asked.verb not in DEAD_VERBS:
                ids = sorted(set(asked.ids or ()), reverse=True, key=int)
            new = NewOperation(
                tenant=tenant,
                verb=asked.verb,
                filter=None if asked.filter is None else encode_json(asked.filter).decode(),
                ids=None if ids is None else encode_json(ids).decode(),
                params=encode_json(asked.params or {}).decode(),
                rate=asked.rate,
                bound=now if asked.verb in DEAD_VERBS else newest["id"],
                total=total,
                total_exact=exact,
                actor=actor,
                next_at=now,
                created_at=now,
                updated_at=now,
            )
            row = await tx.row("add_operation", new)
            assert row is not None
            said = f"operation {row['id']}: {asked.verb}, {'' if exact else 'at least '}{total} to do"
            await write_audit(tx, "start_operation", tenant, now, summary=said)
            return operation_view(row)

        return await self.as_asked(lambda tx: once(tx, tenant, idempotency, BulkOperation, lambda: start(tx)))

    async def get_operation(self, tenant: int, operation_id: int) -> BulkOperation:
        return await self.driver.read(lambda tx: _read(tx, tenant, operation_id))

    async def list_operations(self, tenant: int, *, limit: int = 50, cursor: str | None = None) -> Page[BulkOperation]:
        """The newest first."""
        check_limit(limit)
        asked = fingerprint("operations", tenant)
        (below,) = (NEVER,) if cursor is None else open_cursor(cursor, asked, (int,))
        rows = await self.driver.read(lambda tx: tx.rows("list_operations", tenant, below, limit + 1))
        shown = rows[:limit]
        more = seal_cursor(asked, shown[-1]["id"]) if shown and shown[0]["found"] > len(shown) else None
        return Page(items=[operation_view(row) for row in shown], next=more)

    async def abort_operation(
        self, tenant: int, operation_id: int, *, idempotency: Idempotency | None = None
    ) -> BulkOperation:
        """After the portion that is being done. What is done stays done. Aborted again: the same answer."""
        return await self._move(tenant, operation_id, "abort_operation", "aborted", idempotency)

    async def pause_operation(
        self, tenant: int, operation_id: int, *, idempotency: Idempotency | None = None
    ) -> BulkOperation:
        """After the portion that is being done, until it is resumed or aborted. Paused already: the same answer."""
        return await self._move(tenant, operation_id, "pause_operation", "paused", idempotency)

    async def resume_operation(
        self, tenant: int, operation_id: int, *, idempotency: Idempotency | None = None
    ) -> BulkOperation:
        """From where it was paused. It runs already: the same answer."""
        return await self._move(tenant, operation_id, "resume_operation", "running", idempotency)

    async def _move(
        self, tenant: int, operation_id: int, verb: AuditVerb, to: BulkState, idempotency: Idempotency | None
    ) -> BulkOperation:
        async def move(tx: Transaction) -> BulkOperation:
            moved = await tx.execute(verb, tenant, operation_id)
            operation = await _read(tx, tenant, operation_id)
            if not moved and operation.state != to:
                raise Conflict(f"operation {operation_id} has already ended: {operation.state}")
            if moved:
                said = f"operation {operation_id}: {operation.verb}"
                await write_audit(tx, verb, tenant, await tx.now(), summary=said)
            return operation

        return await self.as_asked(lambda tx: once(tx, tenant, idempotency, BulkOperation, lambda: move(tx)))

    async def wait_for_operation(self) -> int | None:
        """Milliseconds until there is a portion to do; None: there is none."""
        row = await self.driver.read(lambda tx: tx.row("next_operation"), watched=True)
        return None if row is None or row["wait"] is None else max(0, int(row["wait"]))

    async def work_off_operation(self, node: str) -> WorkedOff | None:
        """One portion of the operation whose turn it is. None: there is none that nobody else has in hand."""
        share = SQLITE_SHARE if self.driver.dialect == "sqlite" else 1
        portion = BulkPortion(node, share, self._careful, self._redriven)
        try:
            worked = await self.driver.transact_slow(portion.attempt)
        except StoreUnavailable:
            raise
        except Exception as error:
            if portion.operation is None:
                raise
            telemetry.emit("operation.failed", operation=portion.operation.id, error=f"{type(error).__name__}: {error}")
            worked = await self._past(portion, error)
        if worked is not None and worked.operation.state != "running":
            self._careful.pop(worked.operation.id, None)
        return worked

    async def _past(self, portion: BulkPortion, error: Exception) -> WorkedOff | None:
        """One must not keep the others waiting: they are taken one by one, and the one that fails is passed over."""
        assert portion.operation is not None
        if portion.size > 1:
            self._careful[portion.operation.id] = portion.size
            return await self.work_off_operation(portion.node)
        return await self.driver.transact_slow(lambda tx: portion.pass_over(tx, error))


async def _read(tx: Transaction, tenant: int, operation_id: int) -> BulkOperation:
    row = await tx.row("get_operation", tenant, operation_id)
    if row is None:
        raise no_operation(operation_id)
    return operation_view(row)


async def _count(tx: Transaction, tenant: int, asked: BulkRequest) -> tuple[int, bool, list[BulkItem]]:
    """How many match, whether that is all of them, and the first few."""
    if asked.ids is not None:
        return await _count_ids(tx, tenant, asked, sorted(set(asked.ids), key=str))
    wanted = asked.filter or BulkFilter()
    if asked.verb in DEAD_VERBS:
        where, args = letters_of(wanted)
        rows = await tx.rows("dead_letters_matching" + where, tenant, NEVER, MOST_COUNTED + 1, *args)
        items = [BulkItem(id=row["id"], key=row["key"]) for row in rows[:SAMPLE]]
        return min(len(rows), MOST_COUNTED), len(rows) <= MOST_COUNTED, items
    found = await jobs_below(tx, tenant, wanted, NEVER, MOST_COUNTED + 1)
    exact = found.all_seen and len(found.ids) <= MOST_COUNTED
    return min(len(found.ids), MOST_COUNTED), exact, await _named(tx, tenant, found.ids[:SAMPLE])


async def _count_slots(tx: Transaction, tenant: int, asked: BulkRequest) -> tuple[int, bool, list[BulkItem]]:
    """Of one job, that would be backfilled."""
    said = msgspec.convert(asked.params or {}, BackfillParams)
    job_id = int((asked.ids or [0])[0])
    job = await lock(tx, tenant, job_id)
    if job is None:
        raise no_job(job_id)
    refuse_quarantined(job)
    start, end = parse_rfc3339(said.start) or 0, parse_rfc3339(said.end) or 0
    slots, after = await slots_from(tx, job, start, end, MOST_COUNTED, force=said.force)
    return len(slots), after is None, await _named(tx, tenant, [job_id])


async def _count_ids(
    tx: Transaction, tenant: int, asked: BulkRequest, ids: Sequence[int | str]
) -> tuple[int, bool, list[BulkItem]]:
    if asked.verb in DEAD_VERBS:
        return len(ids), True, [BulkItem(id=run, key=None) for run in ids[:SAMPLE]]
    return len(ids), True, await _named(tx, tenant, [int(job) for job in ids[:SAMPLE]])


async def _named(tx: Transaction, tenant: int, ids: Sequence[int]) -> list[BulkItem]:
    rows = await tx.rows("jobs_by_ids", tenant, list(ids)) if ids else []
    return [BulkItem(id=row["id"], key=row["key"]) for row in sorted(rows, key=lambda row: -int(row["id"]))]
