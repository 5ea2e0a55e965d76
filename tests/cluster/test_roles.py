"""Nodes with one role or both, what they show of themselves, and how fast work finds its way from one to another."""

from __future__ import annotations

import asyncio
import socket
import urllib.request

from onthedot.version import __version__
from tests.cluster.nodes import alive, lateness, post
from tests.cluster.walking import ask
from tests.services.process import NodeProcess
from tests.services.waiting import until

NEVER_POLLS = {"ONTHEDOT_POLL_INTERVAL": "1h"}


def soon(url: str) -> dict[str, object]:
    return {"schedule": {"in": "1ms"}, "target": {"type": "webhook", "url": url}}


async def test_three_processes_of_one_host_are_three_nodes(postgres_url, cluster, receiver, tmp_path, free_port):
    front = cluster.start("--store", postgres_url, "--roles", "api")
    await front.ready()
    await cluster.executors(2, front, "--store", postgres_url, env={**NEVER_POLLS, "ONTHEDOT_CONCURRENCY": "7"})

    nodes = list((await alive(front)).values())
    assert len({node["id"] for node in nodes}) == len({node["pid"] for node in nodes}) == 3
    assert {node["name"] for node in nodes} == {socket.gethostname()}
    assert {node["version"] for node in nodes} == {__version__}
    by_role = sorted((node["roles"], node["capacity"] > 0, node["offers"][:1]) for node in nodes)
    assert by_role == [(["api"], False, []), *[(["executor"], True, ["webhook"])] * 2]
    for node in nodes:
        assert node["started_at"] <= node["beat_at"]
        assert (node["held"], node["running"], node["lateness_ms"]) == (0, 0, None)

    async def led() -> bool:
        return sum(bool(node["leader"]) for node in (await alive(front)).values()) == 1

    await until(led, "one of them holds the cluster's duties")

    # a job made at the front is fired by another process: by hint, for these executors would poll in an hour
    for number in range(1, 6):
        await post(front, "/v1/jobs", soon(receiver.url))
        await receiver.wait_for(number, timeout=20)
    late = sorted(arrival.late_ms for arrival in receiver.received if arrival.late_ms is not None)
    assert late[0] >= 0
    assert late[2] < 500, late  # tens of ms on a quiet machine; this one may be busy

    # the same nodes on the command line and on the first page
    told = NodeProcess("nodes", "--url", front.url, directory=tmp_path, port=free_port())
    assert await told.exited() == 0
    for node in nodes:
        assert node["id"][:12] in told.output()
    assert told.output().count(__version__) == 3
    page = await asyncio.to_thread(lambda: urllib.request.urlopen(front.url, timeout=10).read().decode())
    assert page.count(f"<b>{socket.gethostname()}</b>") == 3
    assert page.count(__version__) >= 3
    assert "leader" in page

    # what stops in order is gone from the list
    status, _ = await ask(front, "GET", "/readyz")
    assert status == 200
    assert await front.stop() == 0


async def test_without_hints_work_is_found_by_polling(postgres_url, cluster, receiver):
    """Both directions: nobody says anything, nobody listens."""
    quiet = f"{postgres_url}?hints=off"
    front = cluster.start("--store", quiet, "--roles", "api")
    await front.ready()
    await cluster.executors(1, front, "--store", quiet, env={"ONTHEDOT_POLL_INTERVAL": "300ms"})
    for number in range(1, 4):
        await post(front, "/v1/jobs", soon(receiver.url))
        await receiver.wait_for(number, timeout=20)
    assert min(lateness(receiver)) >= 0
