"""A day of pending runs, twice in one database: in `runs` as the product has it, and in a copy with hourly partitions.

The copy is called `runs`, too, in a schema of its own: with that schema first in the search path, the product's own
statements read it, word for word.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from bench.ours.parts import opened, spec, webhooks
from bench.ours.seeding import FIRST, PATIENCE, SOON, copy_rows, later_by, spans
from onthedot.model.duration import HOUR
from onthedot.service import DEFAULT_TENANT

__all__ = ["HOURLY", "HOURS", "LAYOUTS", "ONE_TABLE", "Day", "a_day", "layout"]

HOURS = 24
ONE_TABLE, HOURLY = "one table", f"{HOURS} partitions"
LAYOUTS = {ONE_TABLE: "public", HOURLY: "hourly, public"}
"""What each has as its search path."""

# An index that the pattern is not in has a single page: it stays, and costs the copies a glance at its condition.
_INDEXES = """
SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS made,
       pg_relation_size(indexrelid) > 8192 AS filled,
       EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid) AS is_key
FROM pg_index WHERE indrelid = 'public.runs'::regclass
"""
_TABLE = (
    "CREATE TABLE hourly.runs (LIKE public.runs INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (ready_at)"
)
_PARTITION = """
CREATE UNLOGGED TABLE hourly.runs_{hour:02d} PARTITION OF hourly.runs FOR VALUES FROM ({begin}) TO ({end})
WITH (fillfactor = 80, autovacuum_enabled = false)
"""


@dataclass(frozen=True)
class Day:
    """Runs whose time comes within the 24 hours from `began`, evenly spread."""

    began: int
    pending: int


async def a_day(store: str, pending: int) -> Day:
    """Fill both layouts, each on a connection of its own: two cores fill two tables.

    Unlogged, for nothing is measured but reading: half the time and half the disk. Jobs are not filled in, for nothing
    that is measured reads them.
    """
    async with opened(store, webhooks()) as (_, service):
        job = await service.create_job(DEFAULT_TENANT, spec({"in": "1d"}, SOON))
    async with layout(store, ONE_TABLE) as connection:
        await connection.execute("ALTER TABLE runs SET UNLOGGED")
        await connection.execute("ALTER TABLE runs SET (autovacuum_enabled = false)")
        began = await connection.fetchval("SELECT ready_at FROM runs WHERE job_id = $1", job.id)
        indexes = await connection.fetch(_INDEXES)
        await _partition(connection, began, indexes)
    changed = later_by(f"(g - {FIRST - 1}) * {HOURS * HOUR} / {pending}")
    await asyncio.gather(*(_fill(store, name, changed, job.id, pending, indexes) for name in LAYOUTS))
    return Day(began, pending)


@asynccontextmanager
async def layout(store: str, name: str, **settings: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection for which `runs` is that of the layout."""
    connection = await asyncpg.connect(store, server_settings={"search_path": LAYOUTS[name], **settings})
    try:
        yield connection
    finally:
        await connection.close()


async def _partition(connection: asyncpg.Connection, began: int, indexes: list[asyncpg.Record]) -> None:
    await connection.execute("CREATE SCHEMA hourly")
    await connection.execute(_TABLE)
    for index in indexes:
        if not index["filled"]:
            await connection.execute(_on_partitions(index))
    for hour in range(HOURS):
        bounds = {"begin": began + hour * HOUR, "end": began + (hour + 1) * HOUR}
        await connection.execute(_PARTITION.format(hour=hour, **bounds))
    await connection.execute("INSERT INTO hourly.runs SELECT * FROM public.runs")


def _on_partitions(index: asyncpg.Record) -> str:
    """The same index on all partitions. None of them can be unique there: PostgreSQL wants the partition key in it."""
    made: str = index["made"]
    return made.replace("CREATE UNIQUE INDEX", "CREATE INDEX").replace(" ON public.runs ", " ON hourly.runs ")


async def _fill(
    store: str, name: str, changed: Mapping[str, str], job_id: int, pending: int, indexes: list[asyncpg.Record]
) -> None:
    filled = [index for index in indexes if index["filled"]]
    async with layout(store, name, maintenance_work_mem="512MB") as connection:
        if name == ONE_TABLE:
            for index in filled:
                if not index["is_key"]:
                    await connection.execute(f"DROP INDEX {index['name']}")
        for first, last in spans(FIRST, pending - 1):
            await copy_rows(connection, "runs", changed, "t.job_id = $1", job_id, first, last)
        for index in filled:
            if name == HOURLY:
                await connection.execute(_on_partitions(index), timeout=PATIENCE)
            elif not index["is_key"]:
                await connection.execute(index["made"], timeout=PATIENCE)
        await connection.execute("VACUUM ANALYZE runs", timeout=PATIENCE)
        await connection.execute("CHECKPOINT", timeout=PATIENCE)
