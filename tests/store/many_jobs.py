"""Databases with very many jobs, made once per session, for tests of query plans. Tests read them and change nothing.

Indexes and keys are taken away and made again after the rows are in: that takes a third of the time.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import asyncpg

from onthedot.store import open_store
from tests.services.postgres import in_own_loop

__all__ = ["FAST", "START", "fill_postgres", "fill_sqlite"]

START = 1_700_000_000_000
FAST = (
    "synchronous = OFF",
    "journal_mode = OFF",
    "temp_store = MEMORY",
    "cache_size = -400000",
    "ignore_check_constraints = ON",  # a third of the time of a million jobs; PostgreSQL checks the same rows
)

# Common and rare values of each kind: an index that helps only one of them is found out. Tenant 2 has one in 1,000.
_ROWS = (
    (
        """
    INSERT INTO jobs (id, tenant, key, name, key_search, name_search, spec, version, state, level, requires,
                      target_type, schedule_kind, one_off, anchor_at, slots_used, created_at, updated_at)
    SELECT n, CASE WHEN n % 1000 = 7 THEN 2 ELSE 1 END, CASE WHEN n % 2 = 0 THEN 'Key-' || n END, 'Name ' || n,
           CASE WHEN n % 2 = 0 THEN 'key-' || n END, 'name ' || n,
           '{"schedule": {"in": "1h"}, "target": {"type": "command", "command": "c"}}', 1,
           CASE n % 1000 WHEN 1 THEN 'paused' WHEN 2 THEN 'ended' ELSE 'active' END, 1, 'webhook',
           CASE n % 1000 WHEN 3 THEN 'command' ELSE 'webhook' END, CASE n % 1000 WHEN 4 THEN 'cron' ELSE 'in' END,
           n % 1000 <> 4, 0, 0, 0, 0
    """,
        "",
    ),
    (
        f"""
    INSERT INTO runs (id, tenant, job_id, slot, kind, cursor, recurring, due_at, ready_at, requires, level, created_at)
    SELECT n || '-' || ({START} + n), CASE WHEN n % 1000 = 7 THEN 2 ELSE 1 END, n, {START} + n, 'scheduled',
           n % 10 <> 0, n % 1000 = 4, {START} + n + CASE WHEN n % 10 = 6 THEN 100 ELSE 0 END, {START} + n, 'webhook',
           1, 0
    """,
        "",
    ),
    (
        """
    INSERT INTO job_tags (tenant, tag, job_id)
    SELECT CASE WHEN n % 1000 = 7 THEN 2 ELSE 1 END, CASE WHEN n % 1000 = 5 THEN 'rare' ELSE 'common' END, n
    """,
        "WHERE n % 10 IN (5, 7)",
    ),
    (
        """
    INSERT INTO job_stats (job_id, tenant, runs, failures, timed, duration_ms, last_lateness_ms, last_status)
    SELECT n, 1, 1, 0, 0, 0, CASE WHEN n % 7000 = 4 THEN 5000 ELSE 1 END,
           CASE WHEN n % 3000 = 4 THEN 'failed' ELSE 'done' END
    """,
        "WHERE n % 1000 = 4",
    ),
    (
        """
    INSERT INTO noticed_jobs (tenant, what, job_id, noticed_at)
    SELECT 1, CASE WHEN n % 2000 = 4 THEN 'failing' ELSE 'late' END, n, 0
    """,
        "WHERE n % 1000 = 4",
    ),
)

_POSTGRES_CONSTRAINTS = """
SELECT conrelid::regclass::text AS "table", conname AS name, pg_get_constraintdef(oid) AS sql FROM pg_constraint
WHERE conrelid IN ('jobs'::regclass, 'runs'::regclass, 'job_tags'::regclass) AND contype IN ('p', 'u')
"""
_POSTGRES_INDEXES = """
SELECT i.indexname AS name, i.indexdef AS sql FROM pg_indexes i
WHERE i.tablename IN ('jobs', 'runs', 'job_tags') AND i.schemaname = current_schema()
"""
_SQLITE_INDEXES = """
SELECT name, sql FROM sqlite_schema
WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ('jobs', 'runs', 'job_tags')
"""


def fill_postgres(url: str, size: int) -> None:
    """A migrated, empty database gets `size` jobs, each with a run, one in five with a tag."""

    async def fill() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute("SET maintenance_work_mem = '256MB'")
            constraints = await connection.fetch(_POSTGRES_CONSTRAINTS)
            for made in constraints:
                await connection.execute(f"ALTER TABLE {made['table']} DROP CONSTRAINT {made['name']}")
            indexes = await connection.fetch(_POSTGRES_INDEXES)
            for made in indexes:
                await connection.execute(f"DROP INDEX {made['name']}")
            for rows, some in _ROWS:
                await connection.execute(f"{rows} FROM generate_series(1, {size}) AS n {some}")
            for made in constraints:
                await connection.execute(f"ALTER TABLE {made['table']} ADD CONSTRAINT {made['name']} {made['sql']}")
            for made in indexes:
                await connection.execute(made["sql"])
            await connection.execute("VACUUM ANALYZE")
        finally:
            await connection.close()

    in_own_loop(fill)


def fill_sqlite(path: Path, size: int) -> str:
    """The same as a file; its address."""
    url = f"sqlite:///{path}"

    async def migrate() -> None:
        store = await open_store(url)
        await store.close()

    in_own_loop(migrate)
    raw = sqlite3.connect(path, isolation_level=None)
    try:
        for pragma in FAST:
            raw.execute(f"PRAGMA {pragma}")
        indexes = raw.execute(_SQLITE_INDEXES).fetchall()
        for name, _ in indexes:
            raw.execute(f"DROP INDEX {name}")
        numbers = f"WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {size}) SELECT n FROM s"
        for rows, some in _ROWS:
            raw.execute(f"{rows} FROM ({numbers}) {some}")
        for _, sql in indexes:
            raw.execute(sql)
    finally:
        raw.close()
    return url
