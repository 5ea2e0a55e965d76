"""Two real nodes on one PostgreSQL, killed in turn with the service that they use restarted in between: what the proofs
of queues, containers and intakes share."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from tests.services.ports import free_port
from tests.services.postgres import PostgresServer
from tests.services.process import NodeProcess
from tests.services.waiting import until

__all__ = ["TwoNodes", "strike_in_turn"]

BATCH = 500


class Restarted(Protocol):
    """A broker, or a container engine."""

    def restart(self, *, kill: bool = False) -> None: ...


class TwoNodes:
    def __init__(self, place: Path, postgres: PostgresServer, database: str, env: Mapping[str, str]) -> None:
        self._place = place
        self._store = postgres.create_database(database)
        self._env = {"ONTHEDOT_LEASE": "2s", **env}
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

    def create(self, target: dict[str, Any], policy: dict[str, Any], count: int, rate: float, began: float) -> None:
        """One-off jobs, so many a second from that instant on."""
        for first in range(0, count, BATCH):
            jobs = [
                {"schedule": {"at": _instant(began + number / rate)}, "target": target, "policy": policy}
                for number in range(first, min(first + BATCH, count))
            ]
            answers = self.ask("POST", "/v1/jobs/batch", jobs)
            assert all(answer["status"] == 201 for answer in answers), answers[0]

    async def ended(self, count: int, within: float) -> dict[str, str]:
        """The status of each run by its id, when so many have ended."""

        async def all_ended() -> dict[str, str]:
            runs = await asyncio.to_thread(self._runs)
            return runs if len(runs) == count else {}

        return await until(all_ended, f"{count} runs have ended", within)

    def _runs(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for status in ("DONE", "FAILED", "CANCELLED", "SKIPPED"):
            found |= {run["id"]: run["status"] for run in self.items(f"/v1/runs?status={status}&limit=500")}
        return found

    def items(self, path: str) -> list[dict[str, Any]]:
        """Of all pages."""
        found: list[dict[str, Any]] = []
        while path:
            page = self.ask("GET", path)
            found += page["items"]
            path = page.get("next")
        return found

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        url = path if path.startswith("http") else self.nodes[max(self.nodes)].url + path
        request = urllib.request.Request(url, data=data, method=method, headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())


async def strike_in_turn(nodes: TwoNodes, service: Restarted, began: float, lasts: float) -> None:
    """At a fifth, two fifths … of what lasts so many seconds from that monotonic instant on."""
    strikes: list[Callable[[], Awaitable[None]]] = [
        lambda: nodes.replace(0),
        lambda: asyncio.to_thread(service.restart),
        lambda: nodes.replace(1),
        lambda: asyncio.to_thread(service.restart, kill=True),
    ]
    for number, strike in enumerate(strikes, 1):
        await asyncio.sleep(max(0.0, began + number * lasts / 5 - time.monotonic()))
        await strike()


def _instant(seconds: float) -> str:
    milliseconds = round(seconds * 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(milliseconds // 1000)) + f".{milliseconds % 1000:03}Z"
