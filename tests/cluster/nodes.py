"""Several real nodes on one PostgreSQL, as steps a test can take."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from onthedot.echo import EchoServer
from tests.cluster.walking import ask
from tests.services.ports import free_port
from tests.services.process import NodeProcess
from tests.services.waiting import until

__all__ = ["Cluster", "alive", "lateness", "post", "runs_heard"]


async def alive(node: NodeProcess) -> dict[str, dict[str, Any]]:
    """The nodes that one of them shows, by id."""
    status, page = await ask(node, "GET", "/v1/nodes")
    return {item["id"]: item for item in page["items"] if item["state"] == "alive"} if status == 200 else {}


async def post(node: NodeProcess, path: str, body: Any = None, *, expect: int = 201) -> Any:
    status, answer = await ask(node, "POST", path, body)
    assert status == expect, answer
    return answer


def runs_heard(receiver: EchoServer) -> Counter[str]:
    return Counter(arrival.run_id or "" for arrival in receiver.received)


def lateness(receiver: EchoServer) -> list[int]:
    """Of each arrival, in ms; below zero is early."""
    late = [arrival.late_ms for arrival in receiver.received]
    assert late, "nothing has arrived"
    assert None not in late, "an arrival does not say when it was due"
    return [ms for ms in late if ms is not None]


class Cluster:
    """Starts nodes and sees that none outlives the test."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started: list[NodeProcess] = []

    def start(self, *args: str, env: dict[str, str] | None = None, files: int | None = None) -> NodeProcess:
        """Returns at once; `node.ready()` waits."""
        port = free_port()
        node = NodeProcess(
            "serve", "--port", str(port), *args, directory=self._directory, port=port, env=env, descriptors=files
        )
        self._started.append(node)
        return node

    async def executors(self, count: int, seen_by: NodeProcess, *args: str, env: dict[str, str] | None = None) -> None:
        """Nodes without an API, waited for by what the API node shows."""
        there = len(await alive(seen_by))
        for _ in range(count):
            self.start("--roles", "executor", *args, env=env)

        async def all_there() -> bool:
            return len(await alive(seen_by)) == there + count

        await until(all_there, f"{count} executors are there")

    def kill(self) -> None:
        for node in self._started:
            node.kill()
