"""One play: a broker, two nodes on PostgreSQL, and as many one-off jobs as wanted, due one after the other.

Meanwhile each node is killed once and started again, and the broker is restarted twice, once by SIGKILL. In the end
what another client reads from the broker is compared with the runs that the API shows.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.services.brokers import RUNNING, BrokerServer
from tests.services.consumers import CONSUMERS
from tests.services.ports import free_port
from tests.services.postgres import PostgresServer, running_postgres
from tests.services.process import NodeProcess
from tests.services.waiting import until

__all__ = ["Played", "play"]

TOPIC = "orders"
BATCH = 1000
AHEAD = 3.0
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
        cluster = _Cluster(place, postgres, server)
        stack.callback(cluster.kill)
        for number in range(2):
            await cluster.start(number)
        jobs = await asyncio.to_thread(cluster.create, firings, rate)
        await _trouble(cluster, server, firings / rate)
        runs = await cluster.ended(len(jobs))
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


class _Cluster:
    def __init__(self, place: Path, postgres: PostgresServer, server: BrokerServer) -> None:
        self._place = place
        self._store = postgres.create_database("queues")
        self._env = {"ONTHEDOT_BROKERS": json.dumps({"it": {"url": server.url}}), "ONTHEDOT_LEASE": "2s"}
        self.nodes: dict[int, NodeProcess] = {}

    async def start(self, number: int) -> None:
        directory = self._place / str(number)
        directory.mkdir(exist_ok=True)
        self.nodes[number] = await NodeProcess.serve(
            "--store", self._store, directory=directory, port=free_port(), env=self._env
        )

    async def replace(self, number: int) -> None:
        self.nodes[number].kill()
        await self.start(number)

    def kill(self) -> None:
        for node in self.nodes.values():
            node.kill()

    def create(self, firings: int, rate: float) -> list[int]:
        target = {"type": "queue", "broker": "it", "topic": TOPIC, "body": {"a": 1}}
        ids: list[int] = []
        began = time.time() + AHEAD + firings / 2000
        for first in range(0, firings, BATCH):
            jobs = [
                {
                    "schedule": {"at": _instant(began + number / rate)},
                    "target": target,
                    "policy": POLICY,
                }
                for number in range(first, min(first + BATCH, firings))
            ]
            answers = self._ask("POST", "/v1/jobs/batch", jobs)
            assert all(answer["status"] == 201 for answer in answers), answers[0]
            ids += [answer["id"] for answer in answers]
        return ids

    async def ended(self, count: int) -> dict[str, str]:
        async def all_ended() -> dict[str, str]:
            runs = await asyncio.to_thread(self._runs)
            return runs if len(runs) == count else {}

        return await until(all_ended, f"{count} runs have ended", 120 + count / 100)

    def _runs(self) -> dict[str, str]:
        """Of those that have ended, by id."""
        found: dict[str, str] = {}
        for status in ("DONE", "FAILED", "CANCELLED", "SKIPPED"):
            path = f"/v1/runs?status={status}&limit=500"
            while path:
                page = self._ask("GET", path)
                found |= {run["id"]: run["status"] for run in page["items"]}
                path = page.get("next")
        return found

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        node = self.nodes[max(self.nodes)]
        url = path if path.startswith("http") else node.url + path
        request = urllib.request.Request(url, data=data, method=method, headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())


async def _trouble(cluster: _Cluster, server: BrokerServer, lasts: float) -> None:
    """At a fifth, two fifths … of the firings."""
    part = lasts / 5
    began = time.monotonic() + AHEAD
    strikes: list[Callable[[], Awaitable[None]]] = [
        lambda: cluster.replace(0),
        lambda: asyncio.to_thread(server.restart),
        lambda: cluster.replace(1),
        lambda: asyncio.to_thread(server.restart, kill=True),
    ]
    for number, strike in enumerate(strikes, 1):
        await asyncio.sleep(max(0.0, began + number * part - time.monotonic()))
        await strike()


def _instant(seconds: float) -> str:
    milliseconds = round(seconds * 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000)) + f".{milliseconds % 1000:03}Z"
