"""What the store says in the end, read straight from its tables: the checker must not ask the code it checks.

Beside each row stands what the API shows of it: that is one of the things to be checked.
"""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.model.run import RunStatus
from onthedot.store import RunFilter, Store
from onthedot.store.driver import Driver, Row, Transaction
from proof.checker.ledger import Attempt, Entry, Job, Ledger, Live, Stats
from proof.sim.written import WRITTEN

__all__ = ["read_ledger"]

TENANT = 1
PAGE = 500

_JOBS = """
SELECT jobs.id, spec, version, s.runs, s.failures, s.timed, s.duration_ms, s.last_status, s.last_run_id,
    CASE WHEN one_off AND state IN ('active', 'paused')
    AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.job_id = jobs.id AND r.kind = 'scheduled') THEN 'ended' ELSE state END
    AS state
FROM jobs LEFT JOIN job_stats s ON s.job_id = jobs.id ORDER BY jobs.id
"""  # a one-off's row says that it has ended only some time after its run has

_attempts = msgspec.json.Decoder(list[Attempt])


async def read_ledger(driver: Driver, *, at: int, now: int, clock_noted: bool = False) -> Ledger:
    """clock_noted: the database has noted with each row how often its clock had been set (`written`), as only that of
    the simulation does."""
    shown = await _shown_runs(Store(driver))
    jobs_shown = await _shown_jobs(Store(driver))

    async def body(tx: Transaction) -> Ledger:
        jobs = [
            Job(
                id=row["id"],
                spec=msgspec.json.decode(row["spec"]),
                state=row["state"],
                version=row["version"],
                stats=_stats(row),
                view=jobs_shown.get(row["id"]),
            )
            for row in await tx.sql(_JOBS)
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
                tries=row["tries"],
                attempts=_read(row["attempts"]),
                parent=row["parent"],
                open=row["open"],
                open_until=row["open_until"],
                view=shown.get(row["id"]),
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
                node=row["node"],
                started_at=row["started_at"],
                lateness_ms=row["lateness_ms"],
                duration_ms=row["duration_ms"],
                outcome=None if row["outcome"] is None else msgspec.json.decode(row["outcome"]),
                error=row["error"],
                attempts=_read(row["attempts"]),
                parent=row["parent"],
                clock=row["clock"],
                view=shown.get(row["id"]),
            )
            for row in await tx.sql(
                f"SELECT *, {WRITTEN if clock_noted else 'NULL'} AS clock FROM history ORDER BY job_id, slot, id"
            )
        ]
        dead = [row["run_id"] for row in await tx.sql("SELECT run_id FROM dead_letters ORDER BY run_id")]
        return Ledger(at=at, now=now, jobs=jobs, live=live, entries=entries, whole=True, dead=dead)

    return await driver.read(body)


def _read(attempts: str | None) -> list[Attempt]:
    return _attempts.decode(attempts) if attempts else []


def _stats(row: Row) -> Stats | None:
    return None if row["runs"] is None else Stats(**{name: row[name] for name in Stats.__struct_fields__})


async def _shown_jobs(store: Store) -> dict[int, dict[str, Any]]:
    async def body(tx: Transaction) -> list[int]:
        return [row["id"] for row in await tx.sql("SELECT id FROM jobs ORDER BY id")]

    ids = await store.driver.read(body)
    return {job_id: msgspec.to_builtins(await store.get_job(TENANT, job_id), enc_hook=str) for job_id in ids}


async def _shown_runs(store: Store) -> dict[str, dict[str, Any]]:
    """Every run as its list shows it: all that ended or are due, then those that wait."""
    found: dict[str, dict[str, Any]] = {}
    statuses: tuple[RunStatus | None, ...] = (None, "PENDING")
    for status in statuses:
        cursor: str | None = None
        for _ in range(1000):
            page = await store.list_runs(TENANT, RunFilter(status=status, limit=PAGE, cursor=cursor))
            for run in page.items:
                found[run.id] = msgspec.to_builtins(run, enc_hook=str)
            cursor = page.next
            if cursor is None:
                break
    return found
