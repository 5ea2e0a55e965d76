"""`--workers N`: several node processes on one port, watched by a supervisor."""

from __future__ import annotations

import os
import signal

import psutil

from tests.cluster.walking import ask, until


async def alive(node) -> dict[str, int]:
    _, page = await ask(node, "GET", "/v1/nodes")
    return {item["id"]: item["pid"] for item in page["items"] if item["state"] == "alive"}


async def two(node) -> dict[str, int]:
    nodes = await alive(node)
    return nodes if len(nodes) == 2 else {}


async def test_one_that_dies_is_started_again_and_all_stop_together(postgres_url, launch):
    node = await launch("--store", postgres_url, "--workers", "2")
    first = await until(lambda: two(node), "two workers are alive")
    assert node.pid not in first.values()
    victim = next(iter(first.values()))
    os.kill(victim, signal.SIGKILL)

    async def replaced() -> bool:
        return victim not in (now := await two(node)).values() and bool(now)

    await until(replaced, "another takes its place")
    assert "a worker ended and is started again" in node.output()
    pids = list((await two(node)).values())
    assert await node.stop() == 0
    assert not any(psutil.pid_exists(pid) for pid in pids)


async def test_workers_do_not_outlive_their_supervisor(postgres_url, launch):
    node = await launch("--store", postgres_url, "--workers", "2")
    pids = list((await until(lambda: two(node), "two workers are alive")).values())
    os.kill(node.pid, signal.SIGKILL)
    await until(lambda: not any(psutil.pid_exists(pid) for pid in pids), "the orphans stop")
    assert await node.exited() == -signal.SIGKILL


async def test_the_second_signal_reaches_the_workers_too(postgres_url, launch, receiver):
    receiver.delay = 60.0
    node = await launch("--store", postgres_url, "--workers", "2", env={"ONTHEDOT_GRACE": "1h"})
    await until(lambda: two(node), "two workers are alive")
    target = {"type": "webhook", "url": receiver.url}
    spec = {"schedule": {"in": "1ms"}, "target": target, "policy": {"timeout": "1h"}}
    assert (await ask(node, "POST", "/v1/jobs", spec))[0] == 201
    await receiver.wait_for(1, timeout=20)
    node.signal(signal.SIGTERM)

    async def draining() -> bool:
        return (await ask(node, "GET", "/readyz"))[0] == 503

    await until(draining, "the worker that has the run drains")
    assert node.exit_code is None
    node.signal(signal.SIGTERM)
    assert await node.exited() == 0
    assert "Traceback" not in node.output()
