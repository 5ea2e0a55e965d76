"""Many rows at once: what would take minutes through the front door is copied from one real job inside PostgreSQL."""

from __future__ import annotations

import asyncpg

from bench.ours.parts import spec
from onthedot.service import DEFAULT_TENANT, Service

__all__ = ["analyze", "pending_jobs", "runs_of"]

_JOBS = """
INSERT INTO jobs SELECT (jsonb_populate_record(j, jsonb_build_object('id', g))).*
FROM jobs j, generate_series($2::bigint, $3::bigint) g WHERE j.id = $1
"""
_CURSORS = """
INSERT INTO runs SELECT (jsonb_populate_record(r, jsonb_build_object(
    'id', g || '-' || r.slot + g, 'job_id', g, 'slot', r.slot + g, 'due_at', r.due_at + g,
    'ready_at', r.ready_at + g))).*
FROM runs r, generate_series($2::bigint, $3::bigint) g WHERE r.job_id = $1
"""
_RUNS = """
INSERT INTO runs SELECT (jsonb_populate_record(r, jsonb_build_object('id', r.id || g, 'n', g))).*
FROM runs r, generate_series(2, $2::bigint) g WHERE r.id = $1
"""


async def pending_jobs(url: str, service: Service, count: int, target: dict[str, object]) -> None:
    """`count` one-off jobs, due from tomorrow on, a millisecond apart."""
    job = await service.create_job(DEFAULT_TENANT, spec({"in": "1d"}, target))
    connection = await asyncpg.connect(url)
    first = 10_000_000
    await connection.execute(_JOBS, job.id, first, first + count - 2, timeout=1800)
    await connection.execute(_CURSORS, job.id, first, first + count - 2, timeout=1800)
    await connection.execute("VACUUM ANALYZE jobs")
    await connection.execute("VACUUM ANALYZE runs")
    await connection.close()


async def runs_of(url: str, service: Service, count: int, target: dict[str, object]) -> None:
    """`count` runs by hand of one job, all due now: what a queue of tasks is to others."""
    job = await service.create_job(DEFAULT_TENANT, spec({"cron": "0 0 1 1 *"}, target))
    run = await service.run_job(DEFAULT_TENANT, job.id)
    connection = await asyncpg.connect(url)
    await connection.execute(_RUNS, run.id, count, timeout=600)
    await connection.close()


async def analyze(url: str) -> None:
    """What autovacuum would have done long ago on a database that lives."""
    if not url.startswith("postgresql"):
        return
    connection = await asyncpg.connect(url)
    await connection.execute("ANALYZE")
    await connection.close()
