"""Ten minutes under load: a real server with webhooks, and what grows meanwhile.

Half of the firings are those of recurring jobs, half are one-off jobs that arrive all the time over HTTP, each created
some seconds before it is due. Memory is that of the server's process; sizes, dead rows and WAL are PostgreSQL's own.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from statistics import median
from typing import Any

import asyncpg

from bench.contest import Cost
from bench.ours.serving import Server, serving
from bench.ours.sizes import SIZES
from bench.ours.wire import Wire, request, wired
from onthedot.service import DEFAULT_TENANT

__all__ = ["soak"]

AHEAD_MS = 4000
EVERY = 5.0
MB = 2**20
_DEAD = "SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables WHERE relname = $1"
_LATE = """
SELECT count(*) AS n, percentile_disc(0.5) WITHIN GROUP (ORDER BY lateness_ms) AS p50,
       percentile_disc(0.99) WITHIN GROUP (ORDER BY lateness_ms) AS p99, max(lateness_ms) AS max
FROM history WHERE tenant = $1 AND slot >= $2 AND slot < $3 AND status = 'done'
"""
_BECAME = """
SELECT status || coalesce(': ' || error, '') AS became, count(*) AS n
FROM history WHERE tenant = $1 AND slot >= $2 AND slot < $3 GROUP BY 1
UNION ALL
SELECT state || ', tries: ' || tries || coalesce(', parked: ' || parked, ''), count(*)
FROM runs WHERE tenant = $1 AND slot >= $2 AND slot < $3 GROUP BY 1
"""
_WAL_FILES = "SELECT sum(size)::bigint FROM pg_ls_waldir()"


async def soak(store: str, seconds: int, rate: int, echo: str) -> dict[str, Any]:
    async with serving(store, roles="api,executor") as server:
        wire, database = await wired(server.port), await asyncpg.connect(store)
        half = rate // 2
        began = int(time.time() + 5) * 1000
        await _recurring(wire, began, half, echo)
        first = await database.fetchrow(SIZES)
        assert first is not None
        cost = Cost(server.pid)
        ended = began + seconds * 1000
        arriving = asyncio.ensure_future(_arrivals(wire, began, ended, rate - half, echo))
        samples = await _samples(server, database, began, ended, int(first["wal"]))
        await arriving
        expected = rate * seconds
        found = await _recorded(database, began, ended, expected)
        spent = cost.per_run(max(1, found["n"]))
        became = {row["became"]: row["n"] for row in await database.fetch(_BECAME, DEFAULT_TENANT, began, ended)}
        await database.close()
    return {
        "late_ms": {name: float(found[name] or 0) for name in ("p50", "p99", "max")},
        "recorded_share": found["n"] / expected,
        "became": became,
        "rss_growth": _growth(samples, "rss_mb"),
        "runs_growth": _growth(samples, "runs_mb"),
        "wal_bytes_per_run": samples[-1]["wal_mb"] * MB / max(1, found["n"]),
        "history_bytes_per_run": samples[-1]["history_mb"] * MB / max(1, found["n"]),
        **spent,
        "series": {name: [sample[name] for sample in samples] for name in samples[0]},
    }


async def _recurring(wire: Wire, began: int, count: int, echo: str) -> None:
    """One firing a second each, spread evenly over the second."""
    jobs = [
        {"schedule": {"every": "1s", "start": _instant(began + n * 1000 // count)}, "target": _hook(echo)}
        for n in range(count)
    ]
    await _batch(wire, jobs)


async def _arrivals(wire: Wire, began: int, ended: int, count: int, echo: str) -> None:
    """Each second the one-off jobs of a second that is to come."""
    for second in range(began, ended, 1000):
        await asyncio.sleep((second - AHEAD_MS) / 1000 - time.time())
        dues = [_instant(second + n * 1000 // count) for n in range(count)]
        await _batch(wire, [{"schedule": {"at": due}, "target": _hook(echo)} for due in dues])


async def _batch(wire: Wire, jobs: list[dict[str, Any]]) -> None:
    for answer in await wire.json(request("POST", "/v1/jobs/batch", jobs)):
        if answer["status"] != 201:
            raise RuntimeError(f"not created: {answer}")


async def _samples(
    server: Server, database: asyncpg.Connection, began: int, ended: int, wal: int
) -> list[dict[str, float]]:
    """From the first firing to the last, at least ten of them however short it is."""
    gap = min(EVERY, (ended - began) / 1000 / 10)
    found: list[dict[str, float]] = []
    due = began / 1000
    while due <= ended / 1000:
        await asyncio.sleep(due - time.time())
        found.append(await _sample(server, database, began, due, gap, wal))
        due += gap
    return found


async def _sample(
    server: Server, database: asyncpg.Connection, began: int, now: float, gap: float, wal: int
) -> dict[str, float]:
    sizes = await database.fetchrow(SIZES)
    settled = int(now * 1000) - 500  # younger ones may still be on their way
    late = await database.fetchrow(_LATE, DEFAULT_TENANT, settled - int(gap * 1000), settled)
    assert sizes is not None
    assert late is not None
    return {
        "second": now - began / 1000,
        "rss_mb": server.resident_mb(),
        "runs_mb": sizes["runs"] / MB,
        "jobs_mb": sizes["jobs"] / MB,
        "history_mb": sizes["history"] / MB,
        "dead_runs": float(await database.fetchval(_DEAD, "runs")),
        "dead_jobs": float(await database.fetchval(_DEAD, "jobs")),
        "wal_mb": (int(sizes["wal"]) - wal) / MB,
        "wal_files_mb": (await database.fetchval(_WAL_FILES)) / MB,
        "late_p50_ms": float(late["p50"] or 0),
        "late_p99_ms": float(late["p99"] or 0),
        "firings_per_second": late["n"] / gap,
    }


async def _recorded(database: asyncpg.Connection, began: int, ended: int, expected: int) -> asyncpg.Record:
    """The ledger of those seconds; the last ones get half a minute to be written."""
    for left in reversed(range(60)):
        found = await database.fetchrow(_LATE, DEFAULT_TENANT, began, ended)
        if found is not None and (found["n"] >= expected or not left):
            return found
        await asyncio.sleep(0.5)
    raise RuntimeError("the ledger does not answer")


def _growth(samples: list[dict[str, float]], name: str) -> float:
    """The last third to the first, both without the first tenth, in which everything is new."""
    kept = [sample[name] for sample in samples[len(samples) // 10 :]]
    third = max(1, len(kept) // 3)
    return median(kept[-third:]) / max(median(kept[:third]), 0.001)


def _hook(echo: str) -> dict[str, Any]:
    return {"type": "webhook", "url": echo, "body": {"a": 1}}


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
