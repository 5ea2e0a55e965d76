"""`--workers N`: several node processes on one port, watched by a supervisor."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil

from tests.cluster.walking import ask
from tests.services.waiting import until


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
    assert "worker exited; restarting it" in node.output()
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

    await until(draining, "a worker drains")
    assert node.exit_code is None
    node.signal(signal.SIGTERM)
    assert await node.exited() == 0
    assert "Traceback" not in node.output()


def status(place: Path) -> dict[str, str]:
    lines = (place / "status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def is_frozen(pid: int) -> bool:
    """With all its threads: until then it might still take a signal that comes after SIGSTOP."""
    return all(status(thread)["State"].startswith("T") for thread in Path(f"/proc/{pid}/task").iterdir())


def has_waiting(pid: int) -> bool:
    """A SIGTERM that it did not see yet."""
    return bool(int(status(Path(f"/proc/{pid}"))["ShdPnd"], 16) >> (signal.SIGTERM - 1) & 1)


def is_through(pid: int) -> bool:
    """It has seen its signals, acted, and waits for something else."""
    return not has_waiting(pid) and status(Path(f"/proc/{pid}"))["State"].startswith("S")


async def test_a_worker_too_busy_to_look_between_two_signals_hears_both(postgres_url, launch, receiver):
    """Of two equal signals that wait for a process the kernel keeps one."""
    receiver.delay = 60.0
    node = await launch("--store", postgres_url, "--workers", "2", env={"ONTHEDOT_GRACE": "1h"})
    workers = list((await until(lambda: two(node), "two workers are alive")).values())
    target = {"type": "webhook", "url": receiver.url}
    spec = {"schedule": {"in": "1ms"}, "target": target, "policy": {"timeout": "1h"}}
    assert (await ask(node, "POST", "/v1/jobs", spec))[0] == 201
    await receiver.wait_for(1, timeout=20)
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    await until(lambda: all(is_frozen(pid) for pid in workers), "they stand still")
    node.signal(signal.SIGTERM)
    await until(lambda: all(has_waiting(pid) for pid in workers), "the first waits for them")
    node.signal(signal.SIGTERM)
    await until(lambda: is_through(node.pid), "the second is passed on")
    for pid in workers:
        os.kill(pid, signal.SIGCONT)
    assert await node.exited() == 0
    assert "Traceback" not in node.output()
