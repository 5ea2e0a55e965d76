"""What open dashboards cost a node: its CPU, and how late its calls are, next to the same without them.

The node is a server of its own process; the receiver, in this one, takes the time at which calls arrive; the dashboards
are a third process.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import httptools

from bench.contest import in_time, process_cpu_seconds, quantiles
from bench.ours.parts import create, opened, spec, webhooks
from bench.ours.serving import serving
from bench.services import ROOT
from onthedot.service import Service

__all__ = ["dashboards"]

LEAD = 5.0
CONNECT_WITHIN = 120.0


class Arrivals(asyncio.Protocol):
    """Answers 204 to everything and notes how long after its time it came: the path of a call is when it was due."""

    def __init__(self, late_ms: list[float]) -> None:
        self._late_ms = late_ms
        self._parser = httptools.HttpRequestParser(self)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._late_ms.append(time.time() * 1000 - int(url[1:]))

    def on_message_complete(self) -> None:
        self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


async def dashboards(store: str, count: int, rate: int, seconds: int) -> dict[str, Any]:
    """`count` of them, with `rate` calls a second."""
    late_ms: list[float] = []
    loop = asyncio.get_running_loop()
    receiver = await loop.create_server(lambda: Arrivals(late_ms), "127.0.0.1", 0, backlog=1024)
    hook = f"http://127.0.0.1:{receiver.sockets[0].getsockname()[1]}"
    async with opened(store, webhooks()) as (_, service), serving(store, "api,executor") as server:

        async def phase() -> tuple[dict[str, float], float]:
            return await _fire(service, server.pid, hook, late_ms, rate, seconds)

        calm_ms, calm_cpu = await phase()
        async with _watching(server.port, count):
            watched_ms, watched_cpu = await phase()
    receiver.close()
    return {
        "late_ms": watched_ms,
        "calm_ms": calm_ms,
        "added_p99_ms": watched_ms["p99"] - calm_ms["p99"],
        "node_cpu_percent": 100 * (watched_cpu - calm_cpu) / seconds,
        "calm_cpu_percent": 100 * calm_cpu / seconds,
    }


async def _fire(
    service: Service, pid: int, hook: str, late_ms: list[float], rate: int, seconds: int
) -> tuple[dict[str, float], float]:
    """How late the calls came, and the CPU seconds of the node while they were due."""
    late_ms.clear()
    base = int(time.time() + LEAD + rate * seconds / 1500) * 1000
    dues = [base + number * 1000 // rate for number in range(rate * seconds)]
    await create(service, (spec({"at": _instant(due)}, {"type": "webhook", "url": f"{hook}/{due}"}) for due in dues))
    in_time(base / 1000, 1.0)
    await asyncio.sleep(base / 1000 - time.time())
    began = process_cpu_seconds(pid)
    await asyncio.sleep(seconds)
    used = process_cpu_seconds(pid) - began
    async with asyncio.timeout(60):
        while len(late_ms) < len(dues):
            await asyncio.sleep(0.05)
    return quantiles(late_ms), used


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


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
