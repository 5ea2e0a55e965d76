"""One play: a broker, two nodes on PostgreSQL, and as many one-off jobs as wanted, due one after the other.

Meanwhile each node is killed once and started again, and the broker is restarted twice, once by SIGKILL. In the end
what another client reads from the broker is compared with the runs that the API shows. Kafka and SQS are simulated, in
memory: in their place, what everybody comes to them through is restarted, and the Kafka fails some requests besides.
From the SQS, messages are taken as they come, because the simulation gets slower with each one that it holds.
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
from tests.services.consumers import CONSUMERS, Consumed, Consumer
from tests.services.postgres import running_postgres
from tests.services.simulated import FromKafka, FromSqs, running_kafka, running_sqs

__all__ = ["PEERS", "Played", "play"]

Running = Callable[[], AbstractContextManager[BrokerServer]]
PEERS: dict[str, tuple[Running, Consumer]] = {
    **{name: (running, CONSUMERS[name]) for name, running in RUNNING.items()},
    "kafka": (partial(running_kafka, relayed=True), FromKafka()),
    "sqs": (partial(running_sqs, relayed=True), FromSqs()),
}
SIMULATED = {"kafka": "the relay before the mock cluster", "sqs": "the relay before moto"}
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
            f"{self.broker}: {self.firings:,} firings, {self.done:,} done,"
            f" {SIMULATED.get(self.broker, 'broker')} restarted {self.restarts} times,"
            f" nodes killed {self.kills} times: {self.lost} lost, {self.published:,} messages, {self.repeats} repeats"
            f" with the same id, {self.foreign} with an unknown id, in {self.seconds:.0f} s"
        )


async def play(broker: str, firings: int, rate: float) -> Played:
    began = time.monotonic()
    running, consumer = PEERS[broker]
    with ExitStack() as stack:
        server = await asyncio.to_thread(stack.enter_context, running())
        postgres = await asyncio.to_thread(stack.enter_context, running_postgres())
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onthedot-queues-")))
        await consumer.prepare(server, TOPIC)
        env = {"ONTHEDOT_BROKERS": json.dumps({"it": {"url": server.url}})}
        cluster = TwoNodes(place, postgres, "queues", env)
        stack.callback(cluster.kill)
        for number in range(2):
            await cluster.start(number)
        first_at = time.time() + AHEAD + firings / 2000
        await asyncio.to_thread(cluster.create, TARGET, POLICY, firings, rate, first_at)
        over = asyncio.Event()
        taking = asyncio.create_task(_taken(consumer, server, over)) if broker == "sqs" else None
        await strike_in_turn(cluster, server, time.monotonic() + AHEAD, firings / rate)
        runs = await cluster.ended(firings, within=120 + firings / 100)
        over.set()
        messages = [] if taking is None else await taking
        messages += await consumer.consume(server, TOPIC)
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


async def _taken(consumer: Consumer, server: BrokerServer, over: asyncio.Event) -> list[Consumed]:
    found: list[Consumed] = []
    while not over.is_set():
        found += await consumer.consume(server, TOPIC)
        await asyncio.sleep(0.2)
    return found
