"""What a test must not leave behind: tasks on its loop, child processes, connections to a database, open sockets."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.services import orphan_reaper
from tests.services.brokers import BROKER_PREFIXES
from tests.services.container_engine import ENGINE_PREFIX
from tests.services.postgres import PORTS, SERVER_PREFIX, PostgresServer
from tests.services.preloaded import preloaded
from tests.services.waiting import looks, until

__all__ = ["children", "outlived", "sessions_left", "sockets", "sockets_left", "sockets_left_on_the_loop", "tasks_left"]

PATIENCE = 2.0
# multiprocessing starts its two once and keeps them for the life of the interpreter; so is the last will of the tests;
# the servers are the session's.
KEPT = (
    "multiprocessing.resource_tracker",
    "multiprocessing.forkserver",
    orphan_reaper.NAME,
    SERVER_PREFIX,
    *BROKER_PREFIXES,
    ENGINE_PREFIX,
)


def children() -> set[int]:
    """Direct child processes now, and the nodes that were forked for us."""
    return _children_of(os.getpid()) | (_children_of(preloaded.pid) if preloaded.pid else set())


def _children_of(process: int) -> set[int]:
    """Read from /proc where the kernel offers it: psutil walks every process there is."""
    try:
        listed = [task.read_text() for task in Path(f"/proc/{process}/task").glob("*/children")]
    except OSError:
        listed = []
    if listed:
        return {int(pid) for line in listed for pid in line.split()}
    return {child.pid for child in psutil.Process(process).children()}


def outlived(before: set[int]) -> list[str]:
    """Child processes that are new since `before` and do not end by themselves."""
    return _until_empty(lambda: [told for pid in children() - before if (told := _describe(pid))])


def sessions_left(server: PostgresServer, database: str) -> list[str]:
    return _until_empty(lambda: server.sessions(database))


def sockets() -> set[str]:
    """The sockets this process has open now, by the names the kernel has for them; none where it does not tell."""
    found: set[str] = set()
    try:
        descriptors = os.listdir("/proc/self/fd")  # noqa: PTH208  # asked twice for each test: paths took five times as long
    except OSError:
        return found
    for descriptor in descriptors:
        try:
            name = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
        except OSError:  # closed since it was listed, as the list itself is
            continue
        if name.startswith("socket:"):
            found.add(name[len("socket:[") : -1])
    return found


def sockets_left(before: set[str]) -> list[str]:
    """TCP sockets that are new since `before`, and that neither their owner nor the collector closes. What a server
    that was there before has accepted is that server's; connections to a PostgreSQL of ours are its administrator's, or
    `sessions_left` tells of them."""
    if not _new_tcp(before):
        return []
    gc.collect()
    return _until_empty(lambda: _new_tcp(before))


async def sockets_left_on_the_loop(before: set[str]) -> list[str]:
    """The same while the loop runs: what is closed on it is closed a turn later."""
    with suppress(AssertionError):
        await until(lambda: not _new_tcp(before), "all are closed", within=PATIENCE)
    return sockets_left(before)


LISTENING = "0A"


def _new_tcp(before: set[str]) -> list[str]:
    new = sockets() - before
    if not new:
        return []
    table = _tcp()
    served = {here for here, _, state, inode in table if state == LISTENING and inode in before}
    return [
        f"{here} to {there}, state {state}"
        for here, there, state, inode in table
        if inode in new and here not in served and there not in PORTS
    ]


def _tcp() -> list[tuple[int, int, str, str]]:
    """Port here, port there, state and name of each socket of this machine."""
    rows = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:] if Path(table).exists() else []:
            _, here, there, state, *_, inode = line.split()[:10]
            rows.append((_port(here), _port(there), state, inode))
    return rows


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


async def tasks_left(before: AbstractSet[asyncio.Task[Any]] = frozenset()) -> list[str]:
    """Tasks of the running loop that neither ended nor end within a moment; they are cancelled, so as not to spread.

    before: those that were there already, where tests share a loop.
    """
    others = asyncio.all_tasks() - before - {asyncio.current_task()}
    if not others:
        return []
    _, pending = await asyncio.wait(others, timeout=PATIENCE)
    for task in pending:
        task.cancel()
    return [repr(task) for task in pending]


def _describe(pid: int) -> str | None:
    """None for one that is gone by now, or that is kept on purpose."""
    try:
        process = psutil.Process(pid)
        line = " ".join(process.cmdline())
        status = process.status()
    except psutil.NoSuchProcess:
        return None
    if pid in (os.getpid(), preloaded.pid) or any(name in line for name in KEPT):
        return None
    return f"{pid} ({status}) {line or process.name()}"


def _until_empty(look: Callable[[], list[str]]) -> list[str]:
    found: list[str] = []
    for _ in looks(PATIENCE):
        found = look()
        if not found:
            break
    return found
