"""How much a node takes: no more than it may hold, no more than it can run."""

from __future__ import annotations

import asyncio

import asyncpg

from tests.cluster.nodes import alive, lateness, post, runs_heard
from tests.services.waiting import until

TAKEN_EARLY = """
SELECT count(*) FROM runs WHERE state = 'running' AND due_at > extract(epoch from clock_timestamp()) * 1000
"""


async def test_a_node_holds_no_more_than_it_was_told(postgres_url, cluster, receiver):
    """Forty are due soon and within reach; the node takes five at a time, and fires every one of them once."""
    ahead = {"ONTHEDOT_NEXT_JOB_COUNT": "5", "ONTHEDOT_LOOKAHEAD": "30s", "ONTHEDOT_POLL_INTERVAL": "100ms"}
    node = cluster.start("--store", postgres_url, env=ahead)
    await node.ready()
    jobs = [
        {"schedule": {"in": f"{2000 + 25 * number}ms"}, "target": {"type": "webhook", "url": receiver.url}}
        for number in range(40)
    ]
    await post(node, "/v1/jobs/batch", jobs, expect=200)
    held: list[int] = []
    connection = await asyncpg.connect(postgres_url)
    while receiver.count < 40:
        held.append(await connection.fetchval(TAKEN_EARLY))
        held += [item["held"] for item in (await alive(node)).values()]
        await asyncio.sleep(0)
    await connection.close()
    assert max(held) > 0, "it never held anything"
    assert max(held) <= 5, held
    assert set(runs_heard(receiver).values()) == {1}
    assert min(lateness(receiver)) >= 0


async def test_what_one_can_not_run_another_does(postgres_url, cluster, receiver):
    """Two nodes with one slot each, a receiver that takes its time: neither claims what it could only keep waiting."""
    receiver.delay = 1.0
    narrow = {"ONTHEDOT_CONCURRENCY": "1", "ONTHEDOT_LOOKAHEAD": "5s"}
    nodes = [cluster.start("--store", postgres_url, env=narrow) for _ in range(2)]
    for node in nodes:
        await node.ready()
    job = {"schedule": {"in": "4s"}, "target": {"type": "webhook", "url": receiver.url}}
    await post(nodes[0], "/v1/jobs/batch", [job] * 2, expect=200)
    first, second = await receiver.wait_for(2, timeout=30)
    assert abs(second.at - first.at) < 900, "the second waited for the first to end"

    async def both_done() -> bool:
        return all(item["running"] == 0 for item in (await alive(nodes[0])).values())

    await until(both_done, "both have ended")
    assert set(runs_heard(receiver).values()) == {1}
