"""Real nodes that die or are cut off at the wrong moment."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from onthedot.echo import EchoServer
from tests.cluster.door import Door
from tests.cluster.nodes import Cluster, alive, post
from tests.cluster.walking import ask
from tests.services.process import NodeProcess
from tests.services.waiting import until

PULSE = '''
import os, time

def beat():
    """Says every 20 ms that it lives, for 30 s."""
    with open(f"pulse-{os.getpid()}", "a", buffering=1) as pulse:
        for _ in range(1500):
            pulse.write(f"{time.monotonic()}\\n")
            time.sleep(0.02)
'''


@pytest.fixture
def door(postgres_url: str) -> Iterator[Door]:
    port = urlsplit(postgres_url).port
    assert port is not None
    door = Door(port)
    yield door
    door.close()


async def holder(node: NodeProcess, executors: list[NodeProcess]) -> NodeProcess:
    """Which of them has the one run that is to come."""
    found: list[NodeProcess] = []

    async def held() -> bool:
        by_pid = {item["pid"]: item["held"] for item in (await alive(node)).values()}
        found[:] = [executor for executor in executors if by_pid.get(executor.pid)]
        return bool(found)

    await until(held, "a node holds it")
    return found[0]


@pytest.mark.parametrize("delivery", ["at_least_once", "at_most_once"])
async def test_a_run_expires_whose_node_died_before_its_instant(
    postgres_url: str, cluster: Cluster, receiver: EchoServer, delivery: str
):
    """Seen: `expires_in` 500 ms, sent 4.8 s late by the next node."""
    api = cluster.start("--store", postgres_url, "--roles", "api")
    await api.ready()
    ahead = {"ONTHEDOT_LOOKAHEAD": "20s"}
    executors = [cluster.start("--store", postgres_url, "--roles", "executor", env=ahead) for _ in range(2)]

    async def all_there() -> bool:
        return len(await alive(api)) == 3

    await until(all_there, "two executors are there")
    job = await post(
        api,
        "/v1/jobs",
        {
            "schedule": {"in": "4s"},
            "target": {"type": "webhook", "url": receiver.url},
            "policy": {"delivery": delivery, "expires_in": "500ms"},
        },
    )
    (await holder(api, executors)).signal(signal.SIGKILL)
    assert receiver.count == 0

    async def ended() -> bool:
        _, page = await ask(api, "GET", f"/v1/runs?job_id={job['id']}")
        return bool(page["items"]) and page["items"][0]["status"] not in ("PENDING", "EXECUTING")

    await until(ended, "its run has ended", 30)
    _, page = await ask(api, "GET", f"/v1/runs?job_id={job['id']}")
    (run,) = page["items"]
    assert (run["status"], run["reason"], run["tries"]) == ("SKIPPED", "late", 0)
    assert receiver.count == 0


async def test_a_node_that_was_frozen_sends_nothing_of_a_job_that_was_deleted_meanwhile(
    postgres_url: str, cluster: Cluster, receiver: EchoServer
):
    """Thawed within its lease, with the run due and its instant past: it reads what users want first."""
    settings = {"ONTHEDOT_LEASE": "30s", "ONTHEDOT_LOOKAHEAD": "6s"}  # held long enough to be frozen before it is due
    api = cluster.start("--store", postgres_url, "--roles", "api", env=settings)
    await api.ready()
    frozen = cluster.start("--store", postgres_url, "--roles", "executor", env=settings)

    async def both_there() -> bool:
        return len(await alive(api)) == 2

    await until(both_there, "the executor is there")
    job = await post(api, "/v1/jobs", {"schedule": {"in": "6s"}, "target": {"type": "webhook", "url": receiver.url}})
    await holder(api, [frozen])
    frozen.signal(signal.SIGSTOP)
    held_until = time.monotonic() + 6.5
    assert (await ask(api, "DELETE", f"/v1/jobs/{job['id']}"))[0] == 204
    await until(lambda: time.monotonic() > held_until, "its instant has passed")
    assert receiver.count == 0
    frozen.signal(signal.SIGCONT)

    async def given_back() -> bool:
        return all(item["held"] == 0 for item in (await alive(api)).values())

    await until(given_back, "it was given back")
    other = await post(api, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": {"type": "webhook", "url": receiver.url}})
    (arrival,) = await receiver.wait_for(1, timeout=20)
    assert (arrival.run_id or "").startswith(f"{other['id']}-")


async def test_a_function_that_may_not_overlap_ends_before_another_node_starts_it(
    postgres_url: str, cluster: Cluster, door: Door, tmp_path: Path
):
    """Seen: twice at once, on the node that was cut off and on the one that took over."""
    (tmp_path / "pulse.py").write_text(PULSE)
    offered = {"ONTHEDOT_FUNCTIONS": "pulse"}
    place = urlsplit(postgres_url)
    through = place._replace(netloc=place.netloc.replace(f":{place.port}", f":{door.port}")).geturl()
    first = cluster.start("--store", f"{through}{'&' if place.query else '?'}timeout=1", env=offered)
    await first.ready()
    job = {
        "schedule": {"in": "1ms"},
        "target": {"type": "function", "function": "pulse:beat"},
        "policy": {"overlap": "skip"},
    }
    await post(first, "/v1/jobs", job)
    await until(lambda: len(list(tmp_path.glob("pulse-*"))) == 1, "it runs")
    (begun,) = tmp_path.glob("pulse-*")
    second = cluster.start("--store", postgres_url, env=offered)
    await second.ready()
    assert len(list(tmp_path.glob("pulse-*"))) == 1
    door.order("silence", ways=["up", "down"])
    cut_at = time.monotonic()
    await until(lambda: len(list(tmp_path.glob("pulse-*"))) == 2, "the other node starts it", 30)
    (again,) = set(tmp_path.glob("pulse-*")) - {begun}
    await until(lambda: again.read_text().count("\n") > 2, "it lives")
    last, next_first = float(begun.read_text().split()[-1]), float(again.read_text().split()[0])
    assert cut_at < last < next_first
