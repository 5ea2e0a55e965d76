"""What a year leaves behind beside the jobs: a week of runs and their numbers, dead letters, incidents, changes.

Like the jobs, the rows are made inside PostgreSQL; the numbers of the charts are counted by the product itself.
"""

from __future__ import annotations

import asyncpg

from bench.ours.parts import opened, webhooks
from bench.ours.seeding import PATIENCE, indexes_later
from onthedot.model.duration import DAY
from onthedot.model.instant import format_instant
from onthedot.service import DEFAULT_TENANT
from onthedot.store import Store
from onthedot.store.cluster.partitions import make_ahead

__all__ = ["OVERDUE", "past"]

DAYS = 7
RECURRING = 17 / 20
"""Of the jobs of the crowd; the others are one-off, or paused, and have no past."""
OF_ONE_JOB = 20_000
LETTERS = 5000
OVERDUE = 300
"""Jobs whose next run is a few minutes late."""
_RUNS = """
INSERT INTO history (tenant, job_id, id, slot, due_at, kind, status, token, tries, losses, node,
                     started_at, finished_at, lateness_ms, duration_ms, outcome, error)
SELECT $1, job, job || '-' || at, at, at, 'scheduled', CASE WHEN bad THEN 'failed' ELSE 'done' END, 1, 1, 0, 'bench',
       at + late, at + late + 38, late, 38,
       CASE WHEN bad THEN '{"kind":"error","status_code":503}' ELSE '{"kind":"ok"}' END,
       CASE WHEN bad THEN 'the receiver returned 503 Service Unavailable' END
FROM (SELECT CASE WHEN g % $6 = 0 THEN $2 ELSE $2 + g % $3 END AS job, $4 + g * $5 / $7 AS at, g % 101 = 0 AS bad,
             CASE WHEN g % 503 = 0 THEN 1500 ELSE 2 + g % 7 END AS late
      FROM generate_series(1, $7::bigint) g) made
"""
_LETTERS = """
INSERT INTO dead_letters (run_id, tenant, job_id, slot, failed_at, cause)
SELECT id, tenant, job_id, slot, finished_at, 'HTTP 503 from http://127.0.0.1:9' FROM history
WHERE status = 'failed' ORDER BY slot DESC LIMIT $1
"""
_STATS = """
INSERT INTO job_stats (job_id, tenant, runs, failures, timed, duration_ms, last_duration_ms, last_lateness_ms,
                       last_status, last_run_id, last_finished_at)
SELECT DISTINCT ON (job_id) job_id, tenant, n, failures, n, 38 * n, 38, lateness_ms, status, id, finished_at
FROM (SELECT *, count(*) OVER job AS n, count(*) FILTER (WHERE status = 'failed') OVER job AS failures
      FROM history WINDOW job AS (PARTITION BY job_id)) h
ORDER BY job_id, slot DESC
"""
_NOTICED = """
INSERT INTO noticed_jobs (tenant, what, job_id, noticed_at)
SELECT tenant, 'failing', job_id, 0 FROM job_stats WHERE last_status = 'failed'
UNION SELECT tenant, 'late', job_id, 0 FROM job_stats WHERE last_lateness_ms > 1000
UNION SELECT tenant, 'failing', job_id, 0 FROM dead_letters
ON CONFLICT DO NOTHING
"""
_OVERDUE = """
UPDATE runs SET id = job_id || '-' || $1::bigint, slot = $1, due_at = $1, ready_at = $1 WHERE id = ANY (ARRAY(
    SELECT id FROM runs WHERE parked IS NULL ORDER BY id LIMIT $2))
"""
_INCIDENTS = """
INSERT INTO incidents (tenant, subject, condition, job_id, title, reason, cause, ways, count, opened_at, last_at,
                       closed_at)
SELECT $1, 'job ' || job, 'failed', job, 'job-' || job, 'HTTP 503 from http://127.0.0.1:9', 'HTTP 503', '[]', 3, at,
       at + 60000, CASE WHEN g % 100 <> 0 THEN at + 120000 END
FROM (SELECT g, $2 + g AS job, $3 + g * $4 / $5 AS at FROM generate_series(1, $5::bigint) g) made
"""
_CHANGES = """
INSERT INTO audit_log (tenant, at, verb, actor, actor_kind, address, job_id, version_before, version_after, summary)
SELECT $1, $3 + g * $4 / $5, (ARRAY['edit', 'pause', 'resume', 'run'])[1 + g % 4], 'person-' || g % 40, 'key',
       '10.0.0.7', $2 + g, 1, 2, 'schedule, params'
FROM generate_series(1, $5::bigint) g
"""
_OPERATIONS = """
INSERT INTO operations (tenant, verb, state, filter, params, bound, total, total_exact, done, actor, next_at,
                        created_at, updated_at, finished_at)
SELECT $1, 'pause', 'done', '{"tag":"nightly"}', '{"note":"maintenance"}', 1, 5000, true, 5000, 'person-7', at, at,
       at + 9000, at + 9000
FROM (SELECT $2 + g * $3 / $4 AS at FROM generate_series(1, $4::bigint) g) made
"""


async def past(url: str, ids: range, runs: int) -> None:
    """A week of runs, one in a hundred failed, `OF_ONE_JOB` of them of the first job; and what came of them."""
    async with opened(url, webhooks()) as (store, _):
        now = await store.now()
        await store.driver.transact_slow(lambda tx: make_ahead(tx, now - DAYS * DAY))
        connection = await asyncpg.connect(url)
        begin, span, every = now - DAYS * DAY, DAYS * DAY, max(1, runs // OF_ONE_JOB)
        async with indexes_later(connection, ["history"], runs):
            given = (DEFAULT_TENANT, ids.start, int(len(ids) * RECURRING), begin, span, every, runs)
            await connection.execute(_RUNS, *given, timeout=PATIENCE)
        await connection.execute("ANALYZE history", timeout=PATIENCE)
        await connection.execute(_LETTERS, LETTERS, timeout=PATIENCE)
        await connection.execute(_STATS, timeout=PATIENCE)
        await connection.execute(_NOTICED, timeout=PATIENCE)
        await connection.execute(_OVERDUE, now - 120_000, OVERDUE, timeout=PATIENCE)
        changes = min(len(ids), runs) // 10
        await connection.execute(_INCIDENTS, DEFAULT_TENANT, ids.start, begin, span, changes // 10, timeout=PATIENCE)
        await connection.execute(_CHANGES, DEFAULT_TENANT, ids.start, begin, span, changes, timeout=PATIENCE)
        await connection.execute(_OPERATIONS, DEFAULT_TENANT, begin, span, 200, timeout=PATIENCE)
        await connection.execute("VACUUM ANALYZE", timeout=PATIENCE)
        await _counted(store, connection, begin)
        await connection.close()


async def _counted(store: Store, connection: asyncpg.Connection, begin: int) -> None:
    """The numbers of each minute, hour and day since then."""
    await connection.execute("DELETE FROM duty_marks WHERE name LIKE 'rollup.%'")
    for mark in ("rollup.closed", "rollup.settled"):
        await connection.execute("INSERT INTO duty_marks (name, at) VALUES ($1, $2)", mark, begin - begin % DAY)
    while await store.roll_up():
        pass
    count = await connection.fetchval("SELECT count(*) FROM rollups")
    assert count, f"nothing was counted since {format_instant(begin)}"
