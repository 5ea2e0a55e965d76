"""One play: a broker, two nodes on PostgreSQL, and as many messages as wanted, each of which creates a job.

Every tenth job has no key: only the message's id can keep it from being there twice. Every hundredth message is bad.
Meanwhile each node is killed once and started again, and the broker is restarted twice, once by SIGKILL. A message that
the broker did not confirm is sent again with the same id, as a careful sender does.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
import urllib.request
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proof.two_nodes import TwoNodes, strike_in_turn
from tests.services.brokers import RUNNING, BrokerServer
from tests.services.consumers import CONSUMERS
from tests.services.postgres import running_postgres
from tests.services.process import NodeProcess
from tests.services.senders import SENDERS
from tests.services.waiting import until

__all__ = ["Played", "play"]

TOPIC, DEAD = "jobs", "refused"
PORTION = 50
BAD_EVERY, KEYLESS_EVERY = 100, 10


@dataclass(frozen=True)
class Played:
    broker: str
    messages: int
    bad: int
    jobs: int
    missing: int
    doubled: int
    foreign: int
    repeated: int
    letters: int
    lost_letters: int
    restarts: int
    kills: int
    seconds: float

    @property
    def holds(self) -> bool:
        return not (self.missing or self.doubled or self.foreign or self.lost_letters)

    def told(self) -> str:
        return (
            f"{self.broker}: {self.messages:,} messages ({self.bad} of them bad), broker restarted {self.restarts}"
            f" times, nodes killed {self.kills} times: {self.jobs:,} jobs, {self.missing} missing, {self.doubled}"
            f" there twice, {self.foreign} unknown, at least {self.repeated} deliveries repeated;"
            f" {self.letters} dead letters, {self.lost_letters} lost,"
            f" in {self.seconds:.0f} s"
        )


async def play(broker: str, messages: int, rate: float, *, quiet: float = 40.0) -> Played:
    """`quiet`: seconds without a message after which none comes again. What a dead node had taken comes after 30."""
    began = time.monotonic()
    with ExitStack() as stack:
        server = await asyncio.to_thread(stack.enter_context, RUNNING[broker]())
        postgres = await asyncio.to_thread(stack.enter_context, running_postgres())
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="onthedot-intake-")))
        for topic in (TOPIC, DEAD):
            await CONSUMERS[broker].prepare(server, topic)
        intake = {"orders": {"broker": "it", "topic": TOPIC, "dead_letter": DEAD}}
        env = {
            "ONTHEDOT_BROKERS": json.dumps({"it": {"url": server.url}}),
            "ONTHEDOT_INTAKE": json.dumps(intake),
        }
        cluster = _Cluster(place, postgres, "intake", env)
        stack.callback(cluster.kill)
        for number in range(2):
            await cluster.start(number)
        bodies = {f"m{number}": _message(number) for number in range(messages)}
        sending = asyncio.create_task(_send(broker, server, bodies, rate))
        await strike_in_turn(cluster, server, time.monotonic(), messages / rate)
        await sending
        good = {number for number, body in bodies.items() if body != b"bad"}
        names = await cluster.settled(len(good), quiet)
        repeated = await asyncio.to_thread(cluster.repeated)
        letters = await _letters(broker, server, len(bodies) - len(good))
    seen = Counter(names)
    return Played(
        broker=broker,
        messages=messages,
        bad=len(bodies) - len(good),
        jobs=len(names),
        missing=len(good - set(seen)),
        doubled=sum(count - 1 for count in seen.values()),
        foreign=len(set(seen) - good),
        repeated=repeated,
        letters=len(letters),
        lost_letters=len(set(bodies) - good - set(letters)),
        restarts=2,
        kills=2,
        seconds=time.monotonic() - began,
    )


def _message(number: int) -> bytes:
    if number % BAD_EVERY == BAD_EVERY - 1:
        return b"bad"
    job: dict[str, Any] = {
        "name": f"m{number}",
        "schedule": {"in": "30d"},
        "target": {"type": "webhook", "url": "http://127.0.0.1:9/"},
    }
    if number % KEYLESS_EVERY:
        job["key"] = f"job-{number}"
    return json.dumps({"op": "create", "job": job}).encode()


async def _send(broker: str, server: BrokerServer, bodies: dict[str, bytes], rate: float) -> None:
    """A portion at a time; one that fails is sent again until the broker has it."""
    items = [*bodies.items()]
    began = time.monotonic()
    for first in range(0, len(items), PORTION):
        await asyncio.sleep(max(0.0, began + first / rate - time.monotonic()))

        async def sent(portion: list[tuple[str, bytes]] = items[first : first + PORTION]) -> bool:
            try:
                async with asyncio.timeout(10):
                    await SENDERS[broker](server, TOPIC, portion)
            except Exception:
                return False
            return True

        await until(sent, "the broker takes messages", 60)


async def _letters(broker: str, server: BrokerServer, count: int) -> list[str]:
    found: list[str] = []

    async def all_there() -> bool:
        if broker != "rabbitmq":  # reading takes nothing away elsewhere
            found.clear()
        consumed = await CONSUMERS[broker].consume(server, DEAD)
        found.extend(json.loads(each.body)["message"]["id"] for each in consumed)
        return len(set(found)) >= count

    await until(all_there, f"{count} dead letters", 60)
    return found


class _Cluster(TwoNodes):
    async def settled(self, count: int, quiet: float) -> list[str]:
        """The names of all jobs, when there are as many, and a while has passed in which no more came."""

        async def enough() -> bool:
            return len(await asyncio.to_thread(self._names)) >= count

        with suppress(AssertionError):  # then they are missing, and that is told
            await until(enough, f"{count} jobs", 120 + count / 100)
        last, seen = time.monotonic(), await asyncio.to_thread(self._handled)

        async def over() -> bool:
            nonlocal last, seen
            await asyncio.sleep(0.5)
            handled = await asyncio.to_thread(self._handled)
            if handled != seen:
                last, seen = time.monotonic(), handled
            return time.monotonic() - last >= quiet

        await until(over, "no more messages are handled", quiet + 120)
        return await asyncio.to_thread(self._names)

    def _names(self) -> list[str]:
        return [job["name"] for job in self.items("/v1/jobs?limit=500")]

    def _handled(self) -> list[str]:
        """Of both nodes, since each was started."""
        return [
            line
            for node in self.nodes.values()
            for line in _metrics(node)
            if line.startswith("onthedot_intake_messages_total")
        ]

    def repeated(self) -> int:
        return sum(int(float(line.split()[-1])) for line in self._handled() if 'result="repeated"' in line)


def _metrics(node: NodeProcess) -> list[str]:
    with urllib.request.urlopen(f"{node.url}/metrics", timeout=60) as answer:
        found: str = answer.read().decode()
    return found.splitlines()
