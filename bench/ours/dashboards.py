"""What open dashboards cost a node: its CPU, and how late its calls are, next to the same without them.

The node is a server of its own process; the receiver, in this one, takes the time at which calls arrive; the dashboards
are a third process.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bench.contest import process_cpu_seconds, quantiles
from bench.contestants import ROOT
from bench.ours.arrivals import arriving
from bench.ours.parts import opened, webhooks
from bench.ours.serving import serving

__all__ = ["dashboards"]

CONNECT_WITHIN = 120.0


async def dashboards(store: str, count: int, rate: int, seconds: int) -> dict[str, Any]:
    """`count` of them, with `rate` calls a second."""
    async with (
        arriving() as arrivals,
        opened(store, webhooks()) as (_, service),
        serving(store, "api,executor") as server,
    ):

        async def phase() -> tuple[dict[str, float], float]:
            """How late the calls came, and the CPU seconds of the node while they were due."""
            base = await arrivals.expect(service, rate, seconds)
            began = process_cpu_seconds(server.pid)
            await asyncio.sleep(seconds)
            used = process_cpu_seconds(server.pid) - began
            await arrivals.all_of(rate * seconds)
            return quantiles(arrivals.between(base, base + seconds * 1000)), used

        calm_ms, calm_cpu = await phase()
        async with _watching(server.port, count):
            watched_ms, watched_cpu = await phase()
    return {
        "late_ms": watched_ms,
        "calm_ms": calm_ms,
        "added_p99_ms": watched_ms["p99"] - calm_ms["p99"],
        "node_cpu_percent": 100 * (watched_cpu - calm_cpu) / seconds,
        "calm_cpu_percent": 100 * calm_cpu / seconds,
    }


@asynccontextmanager
async def _watching(port: int, count: int) -> AsyncIterator[None]:
    command = (sys.executable, "-m", "bench.viewers", str(port), str(count))
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(CONNECT_WITHIN):
            if await process.stdout.readline() != b"ready\n":
                raise RuntimeError("the dashboards could not be opened")
        yield
        if process.returncode is not None:
            raise RuntimeError("a dashboard was closed")
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
