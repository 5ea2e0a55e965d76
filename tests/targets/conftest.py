"""What the tests of targets share: a receiver on a real socket, a call, a folder of modules for worker processes."""

from __future__ import annotations

import asyncio
import itertools
import os
import platform
import subprocess
import textwrap
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import uvloop

from onthedot.echo import EchoServer
from onthedot.model.targets import Target
from onthedot.targets import Call
from tests.targets.bench import Bench

MakeCall = Callable[..., Call]
SLOT = 1_763_234_567_890  # 2025-11-15T19:22:47.890Z

_numbers = itertools.count(1)
# What speaks with sockets must hold on a node's loop and on the one that every system has.
BOTH_LOOPS = {
    "test_webhooks.py",
    "test_connector.py",
    "test_connection.py",
    "test_connections.py",
    "test_tls.py",
    "test_exchange.py",
    "test_exhaustion.py",
    "test_certificates.py",
    "test_group_guard.py",
}


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    asyncio_alone = {"asyncio": asyncio.new_event_loop}
    return asyncio_alone | {"uvloop": uvloop.new_event_loop} if item.path.name in BOTH_LOOPS else asyncio_alone


@pytest.fixture
async def echo() -> AsyncIterator[EchoServer]:
    async with EchoServer() as server:
        yield server


class WaitsForEver:
    """`it` is a function that never ends by itself, and tells from its own thread how far it got."""

    def __init__(self) -> None:
        self.began, self.cancelled = threading.Event(), threading.Event()

    async def it(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


class Log:
    """What a run has written so far, with the portions it came in."""

    def __init__(self) -> None:
        self.portions: list[str] = []

    def __call__(self, text: str) -> None:
        self.portions.append(text)

    @property
    def text(self) -> str:
        return "".join(self.portions)


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def make_call(log: Log) -> MakeCall:
    def make(target: Target, **fields: Any) -> Call:
        given: dict[str, Any] = {
            "run_id": f"7-{SLOT}",
            "job_id": 7,
            "slot": SLOT,
            "attempt": 1,
            "target": target,
            "log": log,
        }
        return Call(**(given | fields))

    return make


@pytest.fixture
def module(tmp_path: Path) -> Callable[[str], str]:
    """Write a module into tmp_path; returns its name, new each time."""

    def write(source: str) -> str:
        name = f"sample_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        return name

    return write


@pytest.fixture
def prey(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """What no script may reach: files that anybody may read and write, a process, and this one."""
    tmp_path.chmod(0o755)
    secret, writable = tmp_path / "secret", tmp_path / "writable"
    secret.write_text("prey-secret")
    writable.write_text("as it was")
    writable.chmod(0o666)
    shared = Path(f"/dev/shm/onthedot-prey-{os.getpid()}")
    shared.write_text("prey-secret")
    victim = subprocess.Popen(["/bin/sleep", "600"], env={"SECRET": "prey-secret"})
    yield {
        "secret_file": str(secret),
        "writable_file": str(writable),
        "folder": str(tmp_path),
        "shared": shared.name,
        "victim": victim.pid,
        "node": os.getpid(),
        "host": platform.node(),
        "hides_host": True,
        "other_architecture": platform.machine() == "x86_64",
    }
    victim.kill()
    victim.wait()
    shared.unlink()
    assert writable.read_text() in ("as it was", "x", "")


@pytest.fixture
async def bench(tmp_path: Path, module: Callable[[str], str], make_call: MakeCall) -> AsyncIterator[Bench]:
    bench = Bench(tmp_path, module, make_call)
    async with bench.functions:
        yield bench
