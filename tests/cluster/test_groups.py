"""A concurrency group on three real nodes, one of which is killed: never too many at once, and all of it is done."""

from __future__ import annotations

from typing import Any

import pytest

from onthedot.echo import EchoServer
from tests.cluster.nodes import Cluster, alive, post
from tests.cluster.walking import ask
from tests.services.process import NodeProcess
from tests.services.waiting import until

pytestmark = pytest.mark.timeout(120)

LIMIT = 3
TOOK = 0.25
RUNS = 40
FAST = {"ONTHEDOT_LEASE": "2s"}


async def group(node: NodeProcess) -> dict[str, Any]:
    status, page = await ask(node, "GET", "/v1/groups")
    assert status == 200, page
    return next((item for item in page["items"] if item["group"] == "db"), {})


def most_at_once(receiver: EchoServer) -> int:
    """A call is certainly under way until the answer is sent."""
    begins = sorted(arrival.at for arrival in receiver.received)
    return max(sum(begin <= at < begin + TOOK * 1000 - 5 for begin in begins) for at in begins)


async def test_three_nodes_one_killed(postgres_url: str, cluster: Cluster, receiver: EchoServer) -> None:
    receiver.delay = TOOK
    nodes = [cluster.start("--store", postgres_url, env=FAST) for _ in range(3)]
    for node in nodes:
        await node.ready()
    job = {
        "schedule": {"in": "1s"},
        "target": {"type": "webhook", "url": receiver.url},
        "policy": {"concurrency": {"group": "db", "limit": LIMIT}},
    }
    answers = await post(nodes[0], "/v1/jobs/batch", [job] * RUNS, expect=200)
    assert {answer["status"] for answer in answers} == {201}, answers
    await receiver.wait_for(9, timeout=20)
    seen = await group(nodes[0])
    assert (seen["limit"], seen["running"] <= LIMIT, seen["waiting"] > 0) == (LIMIT, True, True), seen
    status, page = await ask(nodes[0], "GET", "/v1/runs?limit=500")
    waiting = [run for run in page["items"] if run["waiting"]]
    assert status == 200
    assert {(run["waiting"], run["waiting_for"], run["tries"]) for run in waiting} == {("group", "db", 0)}
    nodes[2].kill()

    async def drained() -> bool:
        status, page = await ask(nodes[0], "GET", "/v1/runs?status=DONE&limit=500")
        return status == 200 and len(page["items"]) == RUNS

    await until(drained, "all of them are done", within=40)
    assert most_at_once(receiver) <= LIMIT
    assert len({arrival.run_id for arrival in receiver.received}) == RUNS
    assert await group(nodes[0]) == {}
    assert len(await alive(nodes[0])) == 2
