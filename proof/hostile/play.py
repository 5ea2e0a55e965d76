"""Play the corpus against a real `onthedot serve`; how long each request held its loop is read from its own metrics."""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import msgspec

from proof.hostile.corpus import Request
from tests.services.ports import free_port
from tests.services.process import NodeProcess

__all__ = ["LIMIT", "Played", "play", "serving"]

LIMIT = 0.02
_BUCKET = re.compile(r'onthedot_loop_held_seconds_bucket\{le="([^"]+)"\} (\S+)')


class Played(msgspec.Struct, frozen=True):
    request: Request
    status: int
    seconds: float
    held: float
    """The loop was held for no longer than this; inf: for longer than the metric tells."""

    def __str__(self) -> str:
        held = f"≤ {self.held * 1000:.0f} ms"
        return f"{self.request.name:<32} {self.status:>4} {self.seconds:8.3f} s   held {held}"


@asynccontextmanager
async def serving(*args: str) -> AsyncIterator[NodeProcess]:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        chosen = args or ("--store", f"sqlite:///{directory}/store.db")
        node = await NodeProcess.serve(*chosen, directory=directory, port=free_port())
        try:
            yield node
        finally:
            node.kill()


async def play(node: NodeProcess, requests: Iterable[Request]) -> AsyncIterator[Played]:
    async with httpx.AsyncClient(base_url=node.url, timeout=120) as client:
        before = await _held(client)
        for request in requests:
            began = time.monotonic()
            try:
                answer = await client.request(
                    request.method, request.path, content=request.body, headers={"content-type": request.media}
                )
                status = answer.status_code
            except httpx.TransportError:  # it was not even read to its end
                status = 0
            seconds = time.monotonic() - began
            await asyncio.sleep(0.05)  # what it left behind
            after = await _held(client)
            yield Played(request, status, seconds, _longest(before, after))
            before = after


async def _held(client: httpx.AsyncClient) -> dict[float, float]:
    text = (await client.get("/metrics")).text
    return {float(bound): float(count) for bound, count in _BUCKET.findall(text)}


def _longest(before: dict[float, float], after: dict[float, float]) -> float:
    """The smallest bound that all new stalls lie under."""
    new = {bound: after[bound] - before.get(bound, 0) for bound in after}
    total = new[float("inf")]
    return min((bound for bound, count in new.items() if count == total), default=float("inf")) if total else 0.0
