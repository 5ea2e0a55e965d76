"""Real nodes on a pair of real servers: the primary is killed, its asynchronous standby promoted; the work goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.nodes import post, runs_heard
from tests.services.missing import missing
from tests.services.postgres import PostgresMissing, PostgresServer, running_pair
from tests.services.process import NodeProcess
from tests.services.waiting import until

Pair = tuple[PostgresServer, PostgresServer]


@pytest.fixture
def pair() -> Iterator[Pair]:
    try:
        with running_pair() as servers:
            yield servers
    except PostgresMissing as why:
        missing(why)


async def test_nodes_find_the_new_primary_by_themselves(pair, cluster, receiver, tmp_path, free_port):
    primary, standby = pair
    store = f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
    nodes = [cluster.start("--store", store) for _ in range(2)]
    for node in nodes:
        await node.ready()
    target = {"type": "webhook", "url": receiver.url}
    await post(nodes[0], "/v1/jobs", {"key": "each", "schedule": {"cron": "* * * * * *"}, "target": target})
    await receiver.wait_for(3, timeout=30)

    def has_it() -> bool:
        return bool(standby.fetch("SELECT 1 FROM jobs WHERE key = 'each'"))

    await until(has_it, "the standby has the job")
    primary.stop(immediate=True)
    standby.execute("SELECT pg_promote()")
    for node in nodes:
        await node.ready()
    heard = receiver.count
    await receiver.wait_for(heard + 4, timeout=30)
    before, after = sum(count == 1 for count in runs_heard(receiver).values()), len(runs_heard(receiver))
    assert after - before <= 3, "what the standby had not heard of yet is sent again, and nothing else"
    new = await post(nodes[1], "/v1/jobs", {"schedule": {"in": "1h"}, "target": target})
    assert new["id"] > 1_000_000
    told = "".join(node.output() for node in nodes)
    assert told.count("store.failover") == 1
    doctor = NodeProcess("doctor", "--store", store, directory=tmp_path, port=free_port())
    assert await doctor.exited() == 0, doctor.output()
    assert "the database failed over or was restored" in doctor.output()
    for node in nodes:
        assert await node.stop() == 0
        assert "Traceback" not in node.output()
