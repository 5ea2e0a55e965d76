"""How many messages per second a node has confirmed by a broker, and recorded."""

from __future__ import annotations

import asyncio
from typing import Any

from bench.ours.drain import drain_target
from bench.ours.parts import CONCURRENCY
from onthedot.settings import BrokerSetting, Settings
from onthedot.targets import build_targets
from tests.services.brokers import RUNNING
from tests.services.consumers import CONSUMERS

__all__ = ["drain_queue"]


async def drain_queue(store: str, n: int, broker: str) -> dict[str, Any]:
    """One-off jobs, all due. Redis syncs each batch to disk; NATS and RabbitMQ as they do by default."""
    with RUNNING[broker]() as server:
        await CONSUMERS[broker].prepare(server, "bench")
        settings = Settings(brokers={"it": BrokerSetting(url=server.url)}, concurrency=CONCURRENCY)
        target = {"type": "queue", "broker": "it", "topic": "bench", "body": {"a": 1}}
        drained = await drain_target(store, n, build_targets(settings), target)
        published = await asyncio.wait_for(CONSUMERS[broker].consume(server, "bench"), 120)
        if len({message.id for message in published}) != n:
            raise RuntimeError(f"{len(published)} messages are there instead of {n}")
        return drained
