"""Bulk operations in real processes: one that is killed in the middle, and two that work at the same time."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from typing import Any

import httpx

from tests.services.waiting import until

JOBS = 800
NEVER_DUE = {"at": "2099-01-01T00:00:00Z"}


async def test_a_node_that_is_killed_in_the_middle_neither_loses_nor_repeats_a_job(store_url, launch, receiver):
    """The same operation goes on at another node, or at the one that is started again."""
    postgres = store_url.startswith("postgresql")
    nodes = [await launch("--store", store_url) for _ in range(2 if postgres else 1)]
    jobs = [{"schedule": NEVER_DUE, "target": {"type": "webhook", "url": receiver.url}} for _ in range(JOBS)]
    async with httpx.AsyncClient(timeout=30) as client:
        url = nodes[0].url
        made = (await client.post(f"{url}/v1/jobs/batch", json=jobs)).json()
        assert {item["status"] for item in made} == {201}, made[0]
        started = await client.post(f"{url}/v1/operations", json={"verb": "run", "filter": {}, "rate": 100})
        assert started.status_code == 202, started.text
        place = f"/v1/operations/{started.json()['id']}"

        seen: dict[str, Any] = {}

        async def begun() -> bool:
            seen.update((await client.get(f"{url}{place}")).json())
            return bool(seen["done"] > 0)

        await until(begun, "the operation has begun")
        assert seen["done"] < JOBS, "it is in the middle"
        pids = {node["id"]: node["pid"] for node in (await client.get(f"{url}/v1/nodes")).json()["items"]}
        worked = next(node for node in nodes if node.pid == pids[seen["node"]])
        worked.signal(signal.SIGKILL)
        await asyncio.to_thread(worked.kill)
        others = [node for node in nodes if node is not worked] or [await launch("--store", store_url)]
        url = others[0].url

        async def over() -> bool:
            return bool((await client.get(f"{url}{place}")).json()["state"] == "done")

        await until(over, "the operation is done", 60)
        ended = (await client.get(f"{url}{place}")).json()
        assert (ended["done"], ended["failed"], ended["total"]) == (JOBS, 0, JOBS)
        assert ended["node"] != seen["node"], "another one ended it"
        runs: Counter[int] = Counter()
        following = "/v1/runs?limit=500"
        while following:
            page = (await client.get(f"{url}{following}")).json()
            runs.update(run["job_id"] for run in page["items"] if run["kind"] == "manual")
            following = page["next"]
        assert set(runs) == {item["id"] for item in made}
        assert set(runs.values()) == {1}


async def test_a_paused_operation_stays_paused_across_a_restart_of_the_server(store_url, launch, receiver):
    node = await launch("--store", store_url)
    jobs = [{"schedule": NEVER_DUE, "target": {"type": "webhook", "url": receiver.url}} for _ in range(40)]
    async with httpx.AsyncClient(timeout=30) as client:
        await client.post(f"{node.url}/v1/jobs/batch", json=jobs)
        body = {"verb": "tag", "filter": {}, "params": {"add": ["x"]}, "rate": 10}
        place = (await client.post(f"{node.url}/v1/operations", json=body)).headers["location"]
        paused = (await client.post(f"{node.url}{place}/pause")).json()
        assert (paused["state"], paused["done"] < 40) == ("paused", True)
        node.signal(signal.SIGKILL)
        await asyncio.to_thread(node.kill)
        again = await launch("--store", store_url)

        async def later_is_done(later: str) -> bool:
            return bool((await client.get(f"{again.url}{later}")).json()["state"] == "done")

        other = {"verb": "tag", "filter": {}, "params": {"add": ["y"]}}
        later = (await client.post(f"{again.url}/v1/operations", json=other)).headers["location"]
        await until(lambda: later_is_done(later), "an operation that was started later is done", 30)
        rested = (await client.get(f"{again.url}{place}")).json()
        assert (rested["state"], rested["done"]) == ("paused", paused["done"])
        assert (await client.post(f"{again.url}{place}/resume")).json()["state"] == "running"
        await until(lambda: later_is_done(place), "the one that was paused is done", 30)
        assert (await client.get(f"{again.url}{place}")).json()["done"] == 40
