"""One play: a broker, two nodes on PostgreSQL, and as many one-off jobs as wanted, due one after the other.

Meanwhile each node is killed once and started again, and the broker is restarted twice, once by SIGKILL. In the end
what another client reads from the broker is compared with the runs that the API shows. Kafka and SQS are simulated, in
memory: in their place, what everybody comes to them through is restarted, and the Kafka fails some requests besides.
The SQS has twenty queues in turn, because the simulation gets slower with each message that a queue holds.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from proof.two_nodes import TwoNodes, strike_in_turn
from tests.services.brokers import RUNNING, BrokerServer
from tests.services.consumers import CONSUMERS, Consumer
from tests.services.postgres import running_postgres
from tests.services.simulated import FromKafka, FromSqs, running_kafka, running_sqs

__all__ = ["PEERS", "RATE", "RATES", "Played", "play"]

Running = Callable[[], AbstractContextManager[BrokerServer]]
PEERS: dict[str, tuple[Running, Consumer]] = {
    **{name: (running, CONSUMERS[name]) for name, running in RUNNING.items()},
    "kafka": (partial(running_kafka, relayed=True), FromKafka()),
    "sqs": (partial(running_sqs, relayed=True), FromSqs()),
}
SIMULATED = {"kafka": "the relay before the mock cluster", "sqs": "the relay before moto"}
TOPIC = "orders"
RATE, RATES = 250.0, {"sqs": 50.0}
"""Firings a second. A simulation that is slower than its calls come sees them time out and be repeated."""
AHEAD = 3.0
TARGET = {"type": "queue", "broker": "it", "body": {"a": 1}}
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
            f"{self.broker}: {self.firings:,} firings, {self.done:,} done,"
            f" {SIMULATED.get(self.broker, 'broker')} restarted {self.restarts} times,"
            f" nodes killed {self.kills} times: {self.lost} lost, {self.published:,} messages, {self.repeats} repeats"
            f" with the same id, {self.foreign} with an unknown id, in {self.seconds:.0f} s"
        )


async def play(broker: str, firings: int, rate: float) -> Played:
    began = time.monotonic()
    running, consumer = PEERS[broker]
    topics = [f"{TOPIC}-{number}" for number in range(20 if broker == "sqs" else 1)]
    firings -= firings % len(topics)
    with ExitStack() as stack:
        server = await asyncio.to_thread(stack.enter_context, running())
        postgres = await asyncio.to_thread(stack.enter_context, running_postgres())
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onthedot-queues-")))
        for topic in topics:
            await consumer.prepare(server, topic)
        env = {"ONTHEDOT_BROKERS": json.dumps({"it": {"url": server.url}})}
        cluster = TwoNodes(place, postgres, "queues", env)
        stack.callback(cluster.kill)
        for number in range(2):
            await cluster.start(number)
        first_at = time.time() + AHEAD + firings / 2000
        for number, topic in enumerate(topics):
            target, count, at = TARGET | {"topic": topic}, firings // len(topics), first_at + number / rate
            await asyncio.to_thread(cluster.create, target, POLICY, count, rate / len(topics), at)
        await strike_in_turn(cluster, server, time.monotonic() + AHEAD, firings / rate)
        runs = await cluster.ended(firings, within=120 + firings / 100)
        messages = [message for topic in topics for message in await consumer.consume(server, topic)]
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
