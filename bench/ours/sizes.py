"""What stays on disk and what goes through the log: table sizes and WAL, read from PostgreSQL itself."""

from __future__ import annotations

from typing import Self

import asyncpg

__all__ = ["SIZES", "Sizes"]

SIZES = """
SELECT (SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('history'))::bigint AS history,
       pg_total_relation_size('jobs') AS jobs, pg_total_relation_size('runs') AS runs,
       pg_current_wal_lsn() - '0/0'::pg_lsn AS wal
"""


class Sizes:
    """Bytes now, and per run later. On SQLite there is nothing to tell."""

    def __init__(self, url: str, before: dict[str, int]) -> None:
        self._url, self._before = url, before

    @classmethod
    async def of(cls, url: str) -> Self:
        return cls(url, await _read(url))

    async def per_run(self, n: int) -> dict[str, float]:
        """What each run (or job) added to the tables, indexes included, and to the log; and the tables' size now."""
        now = await _read(self._url)
        if not now:
            return {}
        grown = {name: (now[name] - self._before[name]) / n for name in ("history", "jobs", "wal")}
        return {**grown, "jobs_table": now["jobs"], "runs_table": now["runs"]}


async def _read(url: str) -> dict[str, int]:
    if not url.startswith("postgresql"):
        return {}
    connection = await asyncpg.connect(url)
    try:
        row = await connection.fetchrow(SIZES)
    finally:
        await connection.close()
    assert row is not None
    return {name: int(value) for name, value in row.items()}
