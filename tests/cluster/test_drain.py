"""Stopping in order: nothing is lost, nothing is repeated, one node at a time or all of them."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.cluster.nodes import alive, lateness, post, runs_heard
from tests.cluster.walking import ask
from tests.services.waiting import until

NAP = """
import pathlib, time

def nap():
    while not pathlib.Path("wake").exists():
        time.sleep(0.01)
"""


async def run_of(node, job_id: int) -> dict[str, object]:
    _, page = await ask(node, "GET", f"/v1/runs?job_id={job_id}")
    return dict(page["items"][0]) if page["items"] else {}


def webhook(url: str, delay: str) -> dict[str, object]:
    target = {"type": "webhook", "url": url}
    return {"schedule": {"in": delay}, "target": target, "policy": {"timeout": "30s"}}


async def test_what_runs_may_end_and_what_waits_goes_to_others(postgres_url, cluster, receiver, tmp_path):
    (tmp_path / "chores.py").write_text(NAP)
    mine = {"ONTHEDOT_LOOKAHEAD": "20s", "ONTHEDOT_FUNCTIONS": "chores"}
    leaving, staying = cluster.start("--store", postgres_url, env=mine), cluster.start("--store", postgres_url)
    await leaving.ready()
    await staying.ready()
    (far_sighted,) = [node for node, item in (await alive(staying)).items() if "function:chores" in item["offers"]]
    waiting = await post(staying, "/v1/jobs", webhook(receiver.url, "5s"))  # beyond the reach of the other

    async def held() -> bool:
        return bool((await alive(staying))[far_sighted]["held"] == 1)

    await until(held, "the later one is held ahead")
    nap = {"schedule": {"in": "1ms"}, "target": {"type": "function", "function": "chores:nap"}}
    running = await post(leaving, "/v1/jobs", nap)

    async def executing() -> bool:
        return (await run_of(staying, running["id"])).get("status") == "EXECUTING"

    await until(executing, "it naps")
    leaving.signal(signal.SIGTERM)

    async def stopping() -> bool:
        return far_sighted not in await alive(staying)

    await until(stopping, "it is about to leave")
    assert (await run_of(staying, running["id"]))["status"] == "EXECUTING"
    (tmp_path / "wake").touch()
    assert await leaving.exited() == 0
    assert (await run_of(staying, running["id"]))["status"] == "DONE"
    (later,) = await receiver.wait_for(1, timeout=20)
    assert later.headers["x-onthedot-job"] == str(waiting["id"])
    assert 0 <= lateness(receiver)[0] < 1500, "it had to wait for the lease of the one that left"
    assert set(runs_heard(receiver).values()) == {1}


async def test_what_does_not_end_within_the_grace_is_given_back(postgres_url, cluster, receiver):
    """No try is counted: the run goes on elsewhere, under the same idempotency key."""
    receiver.delay = 60.0
    leaving = cluster.start("--store", postgres_url, env={"ONTHEDOT_GRACE": "200ms"})
    await leaving.ready()
    job = await post(leaving, "/v1/jobs", webhook(receiver.url, "1ms"))
    await receiver.wait_for(1, timeout=20)
    leaving.signal(signal.SIGTERM)
    assert await leaving.exited() == 0
    receiver.delay = 0.0
    staying = cluster.start("--store", postgres_url)
    await staying.ready()
    await receiver.wait_for(2, timeout=20)
    assert len(runs_heard(receiver)) == 1

    async def done() -> bool:
        return (await run_of(staying, job["id"])).get("status") == "DONE"

    await until(done, "the other node has done it")


@pytest.mark.timeout(120)
async def test_a_rolling_restart_loses_nothing_and_repeats_nothing(postgres_url, cluster, receiver):
    """Each of three nodes is replaced in turn under load; the receiver counts."""
    receiver.delay = 0.05
    nodes = [cluster.start("--store", postgres_url) for _ in range(3)]
    for node in nodes:
        await node.ready()
    before = set(await alive(nodes[0]))
    made = 0
    rolled = asyncio.Event()

    def worked_off() -> bool:
        return bool(receiver.count >= made - 40)

    async def load() -> None:
        nonlocal made
        while not rolled.is_set():
            batch = [webhook(receiver.url, f"{1 + number * 40}ms") for number in range(25)]
            status, answers = await ask(nodes[0], "POST", "/v1/jobs/batch", batch)
            assert status == 200, answers
            assert {item["status"] for item in answers} == {201}
            made += len(batch)
            await until(worked_off, "the load is worked off")

    loading = asyncio.create_task(load())
    try:
        for _ in range(3):
            fresh = cluster.start("--store", postgres_url)
            await fresh.ready()
            # clients are moved away before their node stops, as a load balancer does that watches readyz
            nodes.insert(0, fresh)
            assert await nodes.pop().stop() == 0
    finally:
        rolled.set()
        await loading
    await until(lambda: receiver.count >= made, "everything has arrived")

    async def quiet() -> bool:
        _, stats = await ask(nodes[0], "GET", "/v1/stats")
        return bool(stats["running"] == 0 and stats["pending"] == 0)

    await until(quiet, "nothing is left to do")
    heard = runs_heard(receiver)
    assert (len(heard), sum(heard.values())) == (made, made)
    assert made > 100
    now = set(await alive(nodes[0]))
    assert len(now) == len(before) == 3
    assert not now & before, "each start is a new identity"
