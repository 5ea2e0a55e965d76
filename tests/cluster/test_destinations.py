"""A receiver that hangs or fails, on real nodes: others stay on time, what waits is shown, and goes out in the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from onthedot.echo import EchoServer
from tests.cluster.nodes import Cluster, lateness, post, runs_heard
from tests.cluster.walking import ask
from tests.services.process import NodeProcess
from tests.services.waiting import until

pytestmark = pytest.mark.timeout(120)

SLOTS = 40
HANGING = 60


class Silent:
    """It takes connections and answers nothing."""

    def __init__(self) -> None:
        self.connections: list[asyncio.BaseTransport] = []
        self.url = ""

    def protocol(self) -> asyncio.Protocol:
        return _Silence(self.connections)


class _Silence(asyncio.Protocol):
    def __init__(self, connections: list[asyncio.BaseTransport]) -> None:
        self._connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connections.append(transport)


@pytest.fixture
async def silent() -> AsyncIterator[Silent]:
    receiver = Silent()
    server = await asyncio.get_running_loop().create_server(receiver.protocol, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    yield receiver
    server.close()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    return "sqlite:///jobs.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")


async def batch(node: NodeProcess, jobs: list[dict[str, Any]]) -> None:
    answers = await post(node, "/v1/jobs/batch", jobs, expect=200)
    assert {answer["status"] for answer in answers} == {201}, answers


async def destination(node: NodeProcess, url: str) -> dict[str, Any]:
    status, page = await ask(node, "GET", "/v1/destinations")
    assert status == 200, page
    return next((item for item in page["items"] if item["destination"] == url.rstrip("/")), {})


async def test_others_stay_on_time_while_one_hangs(
    store: str, cluster: Cluster, receiver: EchoServer, silent: Silent
) -> None:
    node = cluster.start("--store", store, env={"ONTHEDOT_CONCURRENCY": str(SLOTS)})
    await node.ready()
    hanging = {
        "schedule": {"in": "1s"},
        "target": {"type": "webhook", "url": silent.url},
        "policy": {"timeout": "90s", "retry": {"attempts": 1}},
    }
    await batch(node, [hanging] * HANGING)
    half = SLOTS // 2 + 1

    async def half_of_the_slots() -> bool:
        found = await destination(node, silent.url)
        return bool(found) and (found["in_flight"], found["waiting"]) == (half, HANGING - half)

    await until(half_of_the_slots, "it has half of the slots, and the rest waits")
    assert len(silent.connections) == half
    others = {"schedule": {"every": "1s", "count": 4}, "target": {"type": "webhook", "url": receiver.url}}
    await batch(node, [others] * (SLOTS // 4))
    await receiver.wait_for(SLOTS, timeout=30)
    assert max(runs_heard(receiver).values()) == 1
    late = sorted(lateness(receiver))
    assert late[len(late) * 9 // 10] < 500, late
    found = await destination(node, silent.url)
    assert (found["in_flight"], found["breaker"], found["kind"]) == (half, "closed", "webhook")
    status, page = await ask(node, "GET", "/v1/runs?limit=500")
    waiting = [run for run in page["items"] if run["waiting"]]
    assert status == 200
    assert len(waiting) == HANGING - half
    run = waiting[0]
    assert (run["status"], run["waiting"], run["waiting_for"]) == ("PENDING", "destination", silent.url.rstrip("/"))
    assert (run["tries"], run["attempts"]) == (0, [])
    await post(node, f"/v1/runs/{run['id']}/cancel", expect=202)
    status, run = await ask(node, "GET", f"/v1/runs/{run['id']}")
    assert (run["status"], run["tries"], run["waiting"]) == ("CANCELLED", 0, None)


async def test_a_breaker_opens_and_closes_and_no_try_is_lost(
    postgres_url: str, cluster: Cluster, receiver: EchoServer
) -> None:
    """Two nodes, each with a breaker of its own; each node sends a probe when it finds it open for ten seconds."""
    receiver.fail = 1.0
    api = cluster.start("--store", postgres_url)
    await api.ready()
    await cluster.executors(1, api, "--store", postgres_url)
    job = {
        "schedule": {"in": "1s"},
        "target": {"type": "webhook", "url": receiver.url},
        "policy": {"retry": {"attempts": 2, "backoff": "100ms"}},
    }
    await batch(api, [job] * 30)

    async def opened() -> bool:
        return (await destination(api, receiver.url)).get("breaker") == "open"

    await until(opened, "the breaker is open")
    await batch(api, [job] * 40)

    async def all_wait() -> bool:
        found = await destination(api, receiver.url)
        breakers = [node["breaker"] for node in found.get("nodes", ())]
        return breakers == ["open", "open"] and found["waiting"] >= 20

    await until(all_wait, "both breakers are open, and runs wait", within=40)
    receiver.fail = 0.0

    async def all_done() -> bool:
        status, page = await ask(api, "GET", "/v1/runs?status=PENDING&limit=500")
        return status == 200 and page["items"] == []

    await until(all_done, "all that waited was sent", within=60)

    async def closed() -> bool:
        found = await destination(api, receiver.url)
        return not found or "closed" in [node["breaker"] for node in found["nodes"]] or len(found["nodes"]) < 2

    await until(closed, "one node at least knows that it is well")
    status, page = await ask(api, "GET", "/v1/runs?limit=500")
    assert status == 200
    assert len(page["items"]) == 70
    for run in page["items"]:
        assert run["tries"] == len(run["attempts"]) <= 2, run
    sent = sum(run["tries"] for run in page["items"])
    assert sent == receiver.count, "what waited was no attempt"
    assert sum(run["status"] == "DONE" for run in page["items"]) >= 40
