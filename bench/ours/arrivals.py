"""Calls of a server of its own process, and when they arrive at a receiver in this one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import httptools

from bench.contest import in_time
from bench.ours.parts import create, spec
from onthedot.service import Service

__all__ = ["Arrivals", "arriving"]

LEAD = 5.0


class Arrivals:
    """Of each call when it was due, and how many ms later it came."""

    def __init__(self, port: int) -> None:
        self.late_ms: list[tuple[float, float]] = []
        self._hook = f"http://127.0.0.1:{port}"

    async def expect(self, service: Service, rate: int, seconds: int) -> int:
        """Jobs for so many calls; when the first is due, in ms. Returns when it is."""
        self.late_ms.clear()
        base = int(time.time() + LEAD + rate * seconds / 1500) * 1000
        dues = [base + number * 1000 // rate for number in range(rate * seconds)]
        await create(
            service, (spec({"at": _instant(due)}, {"type": "webhook", "url": f"{self._hook}/{due}"}) for due in dues)
        )
        in_time(base / 1000, 1.0)
        await asyncio.sleep(base / 1000 - time.time())
        return base

    async def all_of(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.late_ms) < count:
                await asyncio.sleep(0.05)

    def between(self, begin: float, end: float) -> list[float]:
        """How late those were that were due between these (ms)."""
        return [late for due, late in self.late_ms if begin <= due <= end]


@asynccontextmanager
async def arriving() -> AsyncIterator[Arrivals]:
    found: list[Arrivals] = []
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(found[0]), "127.0.0.1", 0, backlog=1024)
    found.append(Arrivals(server.sockets[0].getsockname()[1]))
    try:
        yield found[0]
    finally:
        server.close()


class _Connection(asyncio.Protocol):
    """Answers 204 to everything. The path of a call is when it was due."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._parser = httptools.HttpRequestParser(self)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        due = int(url[1:])
        self._arrivals.late_ms.append((due, time.time() * 1000 - due))

    def on_message_complete(self) -> None:
        self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
