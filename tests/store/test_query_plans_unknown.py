"""Plans that are made before the first ANALYZE of a table, and kept: by a connection that was open when the database
came back from a crash, or was restored. The planner then takes a column for one of two hundred values."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from onthedot.store.jobs.views import VIEW
from onthedot.store.postgres.driver import NOW, SESSION
from onthedot.store.queries import Queries

ROWS = 40_000
DAY = 86_400_000


@pytest.fixture
async def never_analyzed(postgres_url: str) -> Any:
    """A day of history whose size is known, and nothing else."""
    connection = await asyncpg.connect(postgres_url, server_settings=SESSION)
    try:
        await connection.execute("ALTER TABLE history_default SET (autovacuum_enabled = false)")
        await connection.execute(
            "INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, finished_at)"
            f" SELECT n % 4000 || '-' || n, 1, n % 4000, n, 'scheduled', n, 'done', n FROM generate_series(1, {ROWS}) n"
        )
        await connection.execute("VACUUM history_default")
        assert await connection.fetchval("SELECT reltuples FROM pg_class WHERE relname = 'history_default'") == ROWS
        assert not await connection.fetch("SELECT 1 FROM pg_stats WHERE tablename = 'history_default'")
        yield connection
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("name", "args"),
    [("get_job" + VIEW, "1, 777"), ("get_jobs" + VIEW, "1, '{3,4,5}'"), ("slots_taken", f"1, 777, 0, {DAY}")],
    ids=["get_job", "get_jobs", "slots_taken"],
)
async def test_history_is_found_by_its_job(never_analyzed: Any, name: str, args: str) -> None:
    await never_analyzed.execute(f"PREPARE asked AS {Queries('postgres', NOW)[name]}")
    plan = "\n".join(row[0] for row in await never_analyzed.fetch(f"EXPLAIN EXECUTE asked({args})"))
    assert "history_default_job_id_slot_id_idx" in plan
    assert "history_default_pkey" not in plan, plan
