"""How late other jobs are while hundreds of calls of one destination hang, a broker is away and all processes for
scripts are taken, next to how late they are without.

One node, webhooks, lateness seen where each call is started. First calm, then with as many hanging calls as there are
to be from the start, and more each second: without a limit they would have all slots before the end. Messages for the
broker and scripts that sleep come due each second, too.
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from bench.contest import Cost, in_time, quantiles
from bench.ours.parts import create, opened, running, spec
from bench.ours.seeding import analyze
from onthedot.model.targets import WebhookTarget
from onthedot.objects import open_objects
from onthedot.settings import BrokerSetting, ScriptSetting
from onthedot.targets import EgressRule, Targets
from onthedot.targets.contract import Call, Done
from onthedot.targets.queue.kind import Queues
from onthedot.targets.script.kind import Scripts
from onthedot.targets.webhook.http1.exchange import Exchange
from onthedot.targets.webhook.kind import Webhooks

__all__ = ["bulkhead"]

LEAD = 2.5
MORE = 200
"""Hanging calls that come due in each second beside those from the start."""
MESSAGES = 50
"""… messages for a broker that is away."""
SCRIPTS = 10
"""… scripts that sleep for a minute."""
PROCESSES = 2
SLEEPS = "import time; time.sleep(60)"


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
    n = rate * seconds
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        scripts = Scripts(ScriptSetting(), open_objects(folder), capacity=PROCESSES)
        targets = Targets([kind, Queues({"away": BrokerSetting(url=f"nats://127.0.0.1:{_closed_port()}")}), scripts])
        opened_store, service = await stack.enter_async_context(opened(store, targets))
        silent = await stack.enter_async_context(_hangs())

        message = {"type": "queue", "broker": "away", "topic": "bench", "body": {"a": 1}}
        script = {"type": "script", "code": SLEEPS}

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
                for each, target in ((MESSAGES, message), (SCRIPTS, script)):
                    others = [base - 500 + i * 1000 // each for i in range(each * seconds)]
                    await create(service, (spec({"at": _instant(due)}, target, policy=policy) for due in others))
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


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _instant(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
