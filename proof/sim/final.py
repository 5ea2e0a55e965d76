"""What the store says in the end, read straight from its tables: the checker must not ask the code it checks."""

from __future__ import annotations

import msgspec

from onthedot.store.driver import Driver, Transaction
from proof.checker.ledger import Entry, Job, Ledger, Live

__all__ = ["read_ledger"]

_JOBS = """
SELECT id, spec, CASE WHEN one_off AND state IN ('active', 'paused')
    AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.job_id = jobs.id AND r.kind = 'scheduled') THEN 'ended' ELSE state END
    AS state
FROM jobs ORDER BY id
"""  # a one-off's row says that it has ended only some time after its run has


async def read_ledger(driver: Driver, *, at: int, now: int) -> Ledger:
    async def body(tx: Transaction) -> Ledger:
        jobs = [
            Job(id=row["id"], spec=msgspec.json.decode(row["spec"]), state=row["state"]) for row in await tx.sql(_JOBS)
        ]
        live = [
            Live(
                id=row["id"],
                job=row["job_id"],
                slot=row["slot"],
                kind=row["kind"],
                cursor=bool(row["cursor"]),
                state=row["state"],
                due_at=row["due_at"],
                ready_at=row["ready_at"],
                parked=row["parked"],
                token=row["token"],
                node=row["node"],
            )
            for row in await tx.sql("SELECT * FROM runs ORDER BY job_id, slot, id")
        ]
        entries = [
            Entry(
                id=row["id"],
                job=row["job_id"],
                slot=row["slot"],
                until=row["until_slot"],
                slots=row["slots"],
                kind=row["kind"],
                due_at=row["due_at"],
                status=row["status"],
                reason=row["reason"],
                token=row["token"],
                tries=row["tries"],
                losses=row["losses"],
                finished_at=row["finished_at"],
            )
            for row in await tx.sql("SELECT * FROM history ORDER BY job_id, slot, id")
        ]
        return Ledger(at=at, now=now, jobs=jobs, live=live, entries=entries)

    return await driver.read(body)
