"""What a test must not leave behind: tasks on its loop, child processes, connections to a database."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import psutil

from tests.services import last_will
from tests.services.postgres import SERVER_PREFIX, PostgresServer
from tests.services.waiting import looks

__all__ = ["children", "outlived", "sessions_left", "tasks_left"]

PATIENCE = 2.0
# multiprocessing starts its two once and keeps them for the life of the interpreter; so is the last will of the tests;
# the server is the session's.
KEPT = ("multiprocessing.resource_tracker", "multiprocessing.forkserver", last_will.NAME, SERVER_PREFIX)


def children() -> set[int]:
    """Direct child processes now. Read from /proc where the kernel offers it: psutil walks every process there is."""
    try:
        listed = [task.read_text() for task in Path("/proc/self/task").glob("*/children")]
    except OSError:
        listed = []
    if listed:
        return {int(pid) for line in listed for pid in line.split()}
    return {child.pid for child in psutil.Process().children()}


def outlived(before: set[int]) -> list[str]:
    """Child processes that are new since `before` and do not end by themselves."""
    return _until_empty(lambda: [told for pid in children() - before if (told := _describe(pid))])


def sessions_left(server: PostgresServer, database: str) -> list[str]:
    return _until_empty(lambda: server.sessions(database))


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
    if pid == os.getpid() or any(name in line for name in KEPT):
        return None
    return f"{pid} ({status}) {line or process.name()}"


def _until_empty(look: Callable[[], list[str]]) -> list[str]:
    found: list[str] = []
    for _ in looks(PATIENCE):
        found = look()
        if not found:
            break
    return found
