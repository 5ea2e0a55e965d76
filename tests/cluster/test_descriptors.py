"""A node without descriptors: nothing is lost, nothing counts as a try, and the API goes on answering."""

from __future__ import annotations

import resource
import sys

import pytest

from onthedot.descriptors import allowed
from onthedot.echo import EchoServer
from tests.cluster.nodes import Cluster, post, runs_heard
from tests.cluster.walking import ask
from tests.services.process import NodeProcess
from tests.services.waiting import until

MANY = 400


def jobs(receiver: EchoServer, due_in: str) -> list[dict[str, object]]:
    job: dict[str, object] = {
        "schedule": {"in": due_in},
        "target": {"type": "webhook", "url": receiver.url},
        "policy": {"delivery": "at_most_once", "timeout": "30s"},
    }
    return [job] * MANY


async def all_done(node: NodeProcess) -> None:
    async def are() -> bool:
        _, page = await ask(node, "GET", "/v1/runs?status=DONE&limit=500")
        return len(page["items"]) == MANY

    await until(are, "all are done", 60)
    status, dead = await ask(node, "GET", "/v1/dead")
    assert (status, dead["items"]) == (200, [])


async def test_more_slow_webhooks_than_descriptors(sqlite_url: str, cluster: Cluster, receiver: EchoServer):
    """Seen: `ulimit -n 1024`, default settings, and 501 of 1,000 runs were dead letters that nobody had received."""
    receiver.delay = 0.5
    node = cluster.start("--store", sqlite_url, files=200)
    await node.ready()
    await post(node, "/v1/jobs/batch", jobs(receiver, "1s"), expect=200)
    await receiver.wait_for(1, timeout=30)
    status, ready = await ask(node, "GET", "/readyz")
    assert (status, ready["status"]) == (200, "ready")
    await receiver.wait_for(MANY, timeout=60)
    await all_done(node)
    assert len(runs_heard(receiver)) == MANY
    assert set(runs_heard(receiver).values()) == {1}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux changes the limits of another process")
async def test_descriptors_that_are_gone_while_it_runs(sqlite_url: str, cluster: Cluster, receiver: EchoServer):
    node = cluster.start("--store", sqlite_url)
    await node.ready()
    await post(node, "/v1/jobs/batch", jobs(receiver, "2s"), expect=200)
    soft, hard = resource.prlimit(node.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (30, hard))
    try:
        await until(lambda: "node.short" in node.output(), "it says that it is short", 30)
    finally:
        resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (soft, hard))
    await receiver.wait_for(MANY, timeout=60)
    await all_done(node)
    assert set(runs_heard(receiver).values()) == {1}
    _, ready = await ask(node, "GET", "/readyz")
    assert "too many open files" in ready.get("lacking", "too many open files")
    _, metrics = await ask(node, "GET", "/metrics")
    assert "onthedot_node_short_total 0.0" not in metrics
    assert "onthedot_node_short_total" in metrics


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the limits of another process")
async def test_it_starts_with_all_that_the_operator_allows(sqlite_url: str, cluster: Cluster):
    """A process that was started by a shell, or by systemd, has a soft limit of 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1000), hard))
    try:
        node = cluster.start("--store", sqlite_url, env={"LC_ALL": "C.UTF-8"})  # which makes it a process of ours
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    await node.ready()
    assert resource.prlimit(node.pid, resource.RLIMIT_NOFILE) == (allowed(), hard)
