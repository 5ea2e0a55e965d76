"""Many rows at once: what would take hours through the front door is copied from real rows inside PostgreSQL.

A real job is created first and its rows are the pattern, so that the copies have whatever columns the schema has today.
Indexes are dropped while the rows go in and built again afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager

import asyncpg

from bench.ours.parts import opened, spec, webhooks
from onthedot.service import DEFAULT_TENANT, Service

__all__ = [
    "FIRST",
    "PATIENCE",
    "SOON",
    "analyze",
    "copy_jobs",
    "copy_rows",
    "indexes_later",
    "later_by",
    "pending_jobs",
    "runs_of",
    "seed",
    "settled",
    "spans",
]

FIRST = 10_000_000
"""The id of the first copy: above those that the sequence will give here, and of eight digits for all of them."""

FILLED = ("jobs", "runs", "job_tags")
AT_ONCE = 1_000_000
FEW = 5000
PATIENCE = 3600.0
SOON: dict[str, object] = {"type": "webhook", "url": "http://127.0.0.1:9/", "body": {"a": 1}}

_COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum
"""
_INDEXES = """
SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS made FROM pg_index
WHERE indrelid = ANY ($1::text[]::regclass[]) AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid)
"""
_PLAIN = "SELECT oid::regclass::text AS name FROM pg_class WHERE oid = ANY ($1::text[]::regclass[]) AND relkind = 'r'"


def later_by(ms: str) -> dict[str, str]:
    """The run of the job `g`, so many ms after the one that is copied."""
    return {
        "id": f"g || '-' || (t.slot + {ms})",
        "job_id": "g",
        "slot": f"t.slot + {ms}",
        "due_at": f"t.due_at + {ms}",
        "ready_at": f"CASE WHEN t.parked IS NULL THEN t.ready_at + {ms} ELSE t.ready_at END",
    }


_RUN = later_by("g")


async def seed(store: str, pending: int) -> dict[str, float]:
    """A database of ours with that many one-off jobs, due from tomorrow on, a millisecond apart."""
    async with opened(store, webhooks()) as (_, service):
        if pending:
            await pending_jobs(store, service, pending, SOON)
    return {"pending": pending}


async def pending_jobs(url: str, service: Service, count: int, target: dict[str, object]) -> None:
    """`count` one-off jobs, due from tomorrow on, a millisecond apart."""
    job = await service.create_job(DEFAULT_TENANT, spec({"in": "1d"}, target))
    await asyncio.gather(
        _filled(url, "jobs", {"id": "g"}, "t.id = $1", job.id, count - 1),
        _filled(url, "runs", _RUN, "t.job_id = $1", job.id, count - 1),
    )
    connection = await asyncpg.connect(url)
    await settled(connection)
    await connection.close()


async def _filled(url: str, table: str, changed: Mapping[str, str], which: str, job_id: int, count: int) -> None:
    """One table on a connection of its own: two cores fill two tables."""
    connection = await asyncpg.connect(url)
    async with indexes_later(connection, [table], count):
        for first, last in spans(FIRST, count):
            await copy_rows(connection, table, changed, which, job_id, first, last)
    await connection.close()


def spans(first: int, count: int) -> Iterator[tuple[int, int]]:
    for start in range(first, first + count, AT_ONCE):
        yield start, min(start + AT_ONCE, first + count) - 1


async def copy_jobs(
    connection: asyncpg.Connection, job_id: int, first: int, count: int, more: Mapping[str, str] | None = None
) -> None:
    """The job and its next run, `count` times, with ids from `first` on. `more`: expressions for columns of the job."""
    for span in spans(first, count):
        await copy_rows(connection, "jobs", {"id": "g", **(more or {})}, "t.id = $1", job_id, *span)
        await copy_rows(connection, "runs", _RUN, "t.job_id = $1", job_id, *span)


async def runs_of(url: str, service: Service, count: int, target: dict[str, object]) -> None:
    """`count` runs by hand of one job, all due now: what a queue of tasks is to others."""
    job = await service.create_job(DEFAULT_TENANT, spec({"cron": "0 0 1 1 *"}, target))
    run = await service.run_job(DEFAULT_TENANT, job.id)
    connection = await asyncpg.connect(url)
    await copy_rows(connection, "runs", {"id": "t.id || g", "n": "g"}, "t.id = $1", run.id, 2, count)
    await connection.close()


async def settled(connection: asyncpg.Connection) -> None:
    """As a database that has lived for a while: vacuumed, statistics fresh, nothing left for the next checkpoint."""
    await connection.execute("VACUUM ANALYZE", timeout=PATIENCE)
    for table in FILLED:  # not before: autovacuum would start on what has just been done, in the midst of a measurement
        await connection.execute(f"ALTER TABLE {table} RESET (autovacuum_enabled)")
    await connection.execute("CHECKPOINT", timeout=PATIENCE)


async def analyze(url: str) -> None:
    """What autovacuum would have done long ago on a database that lives."""
    if not url.startswith("postgresql"):
        return
    connection = await asyncpg.connect(url)
    await connection.execute("ANALYZE", timeout=PATIENCE)
    await connection.close()


async def copy_rows(
    connection: asyncpg.Connection,
    table: str,
    changed: Mapping[str, str],
    which: str,
    of: object,
    first: int,
    last: int,
) -> None:
    """The rows that `which` names, once for each `g` from `first` to `last`. `changed`: expressions for columns."""
    columns = [row["attname"] for row in await connection.fetch(_COLUMNS, table)]
    chosen = ", ".join(changed.get(column, f't."{column}"') for column in columns)
    names = ", ".join(f'"{column}"' for column in columns)
    copies = f"FROM {table} t, generate_series($2::bigint, $3::bigint) g WHERE {which}"
    await connection.execute(
        f"INSERT INTO {table} ({names}) SELECT {chosen} {copies}", of, first, last, timeout=PATIENCE
    )


@asynccontextmanager
async def indexes_later(connection: asyncpg.Connection, tables: list[str], count: int) -> AsyncIterator[None]:
    """Keys stay; the other indexes are built when the rows are there."""
    found = await connection.fetch(_INDEXES, tables) if count > FEW else []
    await connection.execute("SET maintenance_work_mem = '512MB'")
    for index in found:
        await connection.execute(f"DROP INDEX {index['name']}")
    plain = await connection.fetch(_PLAIN, tables)
    for table in (row["name"] for row in plain):  # it would read again and again what is vacuumed once at the end
        await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
    yield
    for index in found:
        made = index["made"].replace(" ON ONLY ", " ON ")  # partitions have it, too
        await connection.execute(made, timeout=PATIENCE)
