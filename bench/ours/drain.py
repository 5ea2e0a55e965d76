"""How many due runs per second a node takes, runs and records."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import asyncpg

from bench.contest import cpu_seconds, quantiles
from bench.ours.parts import Meter, callables, create, opened, running, spec, webhooks, workers

__all__ = ["analyze", "drain", "drain_webhooks", "drain_workers"]


async def _noop() -> None:
    """Nothing."""


async def drain(store: str, n: int) -> dict[str, Any]:
    """One-off jobs of an in-process function, all due."""
    return await _drain(store, n, callables(noop=_noop), {"type": "function", "function": "noop"})


async def drain_workers(store: str, n: int, processes: int = 2) -> dict[str, Any]:
    """The same through worker processes."""
    target = {"type": "function", "function": "bench.ours.functions:noop"}
    return await _drain(store, n, workers(processes), target, function_processes=processes)


async def drain_webhooks(store: str, n: int, echo: str) -> dict[str, Any]:
    return await _drain(store, n, webhooks(), {"type": "webhook", "url": echo, "body": {"a": 1}})


async def _drain(url: str, n: int, targets: Any, target: dict[str, Any], **settings: Any) -> dict[str, Any]:
    async with opened(url, targets) as (store, service):
        due = spec({"in": "1ms"}, target)
        await create(service, (due for _ in range(n)))
        await analyze(url)
        meter = Meter(store, n)
        cpu = cpu_seconds()
        async with running(meter, targets, **settings):
            async with asyncio.timeout(300):
                await meter.all.wait()
            cpu = cpu_seconds() - cpu
            rss = _resident_mb()
        return {
            "rate": meter.rate,
            "cpu_us_per_run": cpu / n * 1e6,
            "claim_ms": quantiles(meter.claims_ms),
            "finish_ms": quantiles(meter.finishes_ms),
            "batch": n / len(meter.finishes_ms),
            "rss_mb": rss,
        }


async def analyze(url: str) -> None:
    """What autovacuum would have done long ago on a database that lives."""
    if not url.startswith("postgresql"):
        return
    connection = await asyncpg.connect(url)
    await connection.execute("ANALYZE")
    await connection.close()
    time.sleep(0.2)


def _resident_mb() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
