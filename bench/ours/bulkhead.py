"""How late other jobs are while hundreds of calls of one destination hang, next to how late they are without.

One node, webhooks, lateness seen where each call is started. First calm, then with as many hanging calls as there are
to be from the start, and more each second: without a limit they would have all slots before the end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from bench.contest import Cost, in_time, quantiles
from bench.ours.parts import create, opened, running, spec
from bench.ours.seeding import analyze
from onthedot.model.targets import WebhookTarget
from onthedot.targets import EgressRule, Targets
from onthedot.targets.contract import Call, Done
from onthedot.targets.webhook.http1.exchange import Exchange
from onthedot.targets.webhook.kind import Webhooks

__all__ = ["bulkhead"]

LEAD = 2.5
MORE = 200
"""Hanging calls that come due in each second beside those from the start."""


class Watched(Webhooks):
    """Notes how late calls to one place are started."""

    def __init__(self, watched: str) -> None:
        super().__init__(EgressRule.parse(allow_private=True))
        self.late_ms: list[float] = []
        self._watched = watched

    def start(self, call: Call, at: float, done: Done) -> Exchange:
        assert isinstance(call.target, WebhookTarget)
        if call.target.url.startswith(self._watched):
            self.late_ms.append(time.time() * 1000 - call.slot)
        return super().start(call, at, done)


async def bulkhead(store: str, hanging: int, rate: int, seconds: int, echo: str, lead: float = 1.0) -> dict[str, Any]:
    """`lead`: so many times more time to store the jobs."""
    kind = Watched(echo)
    targets = Targets([kind])
    n = rate * seconds
    async with opened(store, targets) as (opened_store, service), _hangs() as silent:

        async def phase(*, hangs: bool) -> list[float]:
            kind.late_ms.clear()
            base = int(time.time() + lead * LEAD + 1) * 1000
            dues = [base + i * 1000 // rate for i in range(n)]
            hook = {"type": "webhook", "url": echo, "body": {"a": 1}}
            await create(service, (spec({"at": _instant(due)}, hook) for due in dues))
            if hangs:
                there = {"type": "webhook", "url": silent}
                slow = [base - 500] * hanging + [base + i * 1000 // MORE for i in range(MORE * seconds)]
                policy = {"timeout": "60s", "retry": {"attempts": 1}}
                await create(service, (spec({"at": _instant(due)}, there, policy=policy) for due in slow))
            await analyze(store)
            in_time(base / 1000, 1.0)
            async with asyncio.timeout(lead * LEAD + seconds + 60):
                while len(kind.late_ms) < n:
                    await asyncio.sleep(0.05)
            return list(kind.late_ms)

        async with running(opened_store, targets, grace=0) as node:
            cost = Cost()
            calm = await phase(hangs=False)
            hung = await phase(hangs=True)
            held = node.load.running
            spent = cost.per_run(2 * n)
    found, before = quantiles(hung), quantiles(calm)
    return {
        "late_ms": found,
        "calm_ms": before,
        "to_calm": found["p99"] / before["p99"],
        "hanging": held,
        **spent,
    }


@asynccontextmanager
async def _hangs() -> AsyncIterator[str]:
    """A receiver that takes every connection and answers nothing."""
    server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0, backlog=4096)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
