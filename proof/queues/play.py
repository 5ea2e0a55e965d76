"""One play: a broker, two nodes on PostgreSQL, and as many one-off jobs as wanted, due one after the other.

Meanwhile each node is killed once and started again, and the broker is restarted twice, once by SIGKILL. In the end
what another client reads from the broker is compared with the runs that the API shows.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from proof.two_nodes import TwoNodes, strike_in_turn
from tests.services.brokers import RUNNING
from tests.services.consumers import CONSUMERS
from tests.services.postgres import running_postgres

__all__ = ["Played", "play"]

TOPIC = "orders"
AHEAD = 3.0
TARGET = {"type": "queue", "broker": "it", "topic": TOPIC, "body": {"a": 1}}
POLICY = {"timeout": "5s", "retry": {"attempts": 100, "backoff": "200ms", "factor": 2, "max": "2s"}}


@dataclass(frozen=True)
class Played:
    broker: str
    firings: int
    done: int
    published: int
    lost: int
    foreign: int
    repeats: int
    restarts: int
    kills: int
    seconds: float

    @property
    def holds(self) -> bool:
        return self.done == self.firings and not self.lost and not self.foreign

    def told(self) -> str:
        return (
            f"{self.broker}: {self.firings:,} firings, {self.done:,} done, broker restarted {self.restarts} times,"
            f" nodes killed {self.kills} times: {self.lost} lost, {self.published:,} messages, {self.repeats} repeats"
            f" with the same id, {self.foreign} with an unknown id, in {self.seconds:.0f} s"
        )


async def play(broker: str, firings: int, rate: float) -> Played:
    began = time.monotonic()
    with ExitStack() as stack:
        server = await asyncio.to_thread(stack.enter_context, RUNNING[broker]())
        postgres = await asyncio.to_thread(stack.enter_context, running_postgres())
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onthedot-queues-")))
        await CONSUMERS[broker].prepare(server, TOPIC)
        env = {"ONTHEDOT_BROKERS": json.dumps({"it": {"url": server.url}})}
        cluster = TwoNodes(place, postgres, "queues", env)
        stack.callback(cluster.kill)
        for number in range(2):
            await cluster.start(number)
        first_at = time.time() + AHEAD + firings / 2000
        await asyncio.to_thread(cluster.create, TARGET, POLICY, firings, rate, first_at)
        await strike_in_turn(cluster, server, time.monotonic() + AHEAD, firings / rate)
        runs = await cluster.ended(firings, within=120 + firings / 100)
        messages = await CONSUMERS[broker].consume(server, TOPIC)
    seen = Counter(message.id for message in messages)
    expected = set(runs)
    return Played(
        broker=broker,
        firings=firings,
        done=sum(status == "DONE" for status in runs.values()),
        published=seen.total(),
        lost=len(expected - set(seen)),
        foreign=len(set(seen) - expected),
        repeats=seen.total() - len(seen),
        restarts=2,
        kills=2,
        seconds=time.monotonic() - began,
    )
