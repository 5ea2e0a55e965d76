"""What the server, its database and its files take up, every few seconds; and which of it is flat."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import asyncpg

from bench.ours.serving import Server
from bench.soak.away import AWAY
from bench.soak.trend import Measure, Trend, per_minute, trend

__all__ = ["EVERY", "Sampler", "Series", "trends"]

EVERY = 5.0
FILES_EVERY = 6
"""Every so many samples the files of the run logs are counted: there are tens of thousands."""
MB = 2**20
OF_A_DAY = ("table history", "table idempotency")
"""Kept for a day at least, whatever RETENTION says: in a soak they can only grow."""
SMALL_MB = 2.0
"""Tables that never grow beyond this are summed up as the others."""
Series = dict[str, list[float | None]]

_TABLES = """
SELECT CASE WHEN relname LIKE 'history%' THEN 'history' ELSE relname::text END AS name,
       sum(pg_total_relation_size(oid))::bigint AS bytes
FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace GROUP BY 1
"""
_OTHERS = """
SELECT (SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables) AS dead,
       (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
        AND backend_type = 'client backend' AND application_name <> 'soak') AS connections,
       (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint AS wal,
       (SELECT sum(size)::bigint FROM pg_ls_waldir()) AS wal_files
"""


class Sampler:
    """`connect`: to the primary of the moment. While there is none, what it would have said is None."""

    def __init__(self, server: Server, home: Path, connect: Callable[[], Awaitable[asyncpg.Connection]]) -> None:
        self._server, self._home, self._connect = server, home, connect
        self._connection: asyncpg.Connection | None = None
        self._samples: list[dict[str, float | None]] = []

    async def run(self, began: float, ended: float, every: float = EVERY) -> None:
        due = began
        while due <= ended:
            await asyncio.sleep(due - time.time())
            sample: dict[str, float | None] = {"second": time.time() - began}
            sample |= self._process()
            if len(self._samples) % FILES_EVERY == 0:
                sample |= await asyncio.to_thread(_files, self._home / "logs")
            sample |= await self._database()
            self._samples.append(sample)
            due = max(due + every, time.time())
        await self._drop()

    def series(self) -> Series:
        """All of the same length; None: not sampled then."""
        names = dict.fromkeys(name for sample in self._samples for name in sample)
        return {name: [sample.get(name) for sample in self._samples] for name in names}

    def _process(self) -> dict[str, float | None]:
        return {
            "memory": self._server.resident_mb(),
            "descriptors": float(self._server.descriptors()),
            "output": (self._home / "server.log").stat().st_size / MB,
        }

    async def _database(self) -> dict[str, float | None]:
        try:
            if self._connection is None:
                self._connection = await self._connect()
            tables = await self._connection.fetch(_TABLES, timeout=10)
            others = await self._connection.fetchrow(_OTHERS, timeout=10)
        except AWAY:
            await self._drop()
            return {}
        assert others is not None
        return {
            "connections": float(others["connections"]),
            "dead": float(others["dead"]),
            "wal": others["wal"] / MB,
            "wal files": others["wal_files"] / MB,
            **{f"table {row['name']}": row["bytes"] / MB for row in tables},
        }

    async def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
        self._connection = None


def _files(directory: Path) -> dict[str, float | None]:
    count = size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                size += (Path(folder) / name).stat().st_size
            except FileNotFoundError:  # retention was quicker
                continue
            count += 1
    return {"log files": float(count), "log bytes": size / MB}


def trends(series: Mapping[str, Sequence[float | None]], rate: int) -> list[Trend]:
    """Each by the line through its second half. What can only grow (the log of writes, the ledger of a day, the
    server's own log) is judged by how fast it does."""
    seconds = [at for at in series["second"] if at is not None]
    window = min(60.0, (seconds[-1] - seconds[0]) / 10)
    minute = rate * 60
    found = [
        trend(Measure("memory of the server", "MB", 5.0), seconds, series["memory"]),
        trend(Measure("open descriptors", "", 5.0), seconds, series["descriptors"]),
        trend(Measure("database connections", "", 2.0), seconds, series["connections"]),
        *_tables(series, seconds),
        # Autovacuum comes once a minute at most: what a minute leaves behind is no trend.
        trend(Measure("dead rows", "", float(minute)), seconds, series["dead"]),
        trend(Measure("WAL written", "MB a minute", 5.0), seconds, per_minute(seconds, series["wal"], window)),
        trend(Measure("pg_wal", "MB", 128.0), seconds, series["wal files"]),
        trend(Measure("server's log", "MB a minute", 0.1), seconds, per_minute(seconds, series["output"], window)),
        # They are removed once a minute, so those of a minute come and go.
        trend(Measure("log files of runs", "", float(minute)), seconds, series["log files"]),
        trend(Measure("log files of runs", "MB", minute * 200 / MB), seconds, series["log bytes"]),
    ]
    for name in OF_A_DAY:
        growth = per_minute(seconds, series[name], window)
        found.append(trend(Measure(f"{name} (of one day)", "MB a minute", 1.0), seconds, growth))
    return found


def _tables(series: Mapping[str, Sequence[float | None]], seconds: Sequence[float]) -> list[Trend]:
    tables = {name: values for name, values in series.items() if name.startswith("table ") and name not in OF_A_DAY}
    large = {name: values for name, values in tables.items() if max(value or 0.0 for value in values) > SMALL_MB}
    small = [values for name, values in tables.items() if name not in large]
    summed = [None if None in each else sum(value or 0.0 for value in each) for each in zip(*small, strict=True)]
    return [
        *(trend(Measure(name, "MB", 2.0), seconds, values) for name, values in sorted(large.items())),
        trend(Measure("all other tables", "MB", 2.0), seconds, summed),
    ]
