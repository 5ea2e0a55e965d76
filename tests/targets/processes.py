"""Waiting for what happens in other processes, with a deadline."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import psutil


async def until(condition: Callable[[], object], deadline: float = 10.0) -> None:
    async with asyncio.timeout(deadline):
        while not condition():
            await asyncio.sleep(0.005)


def gone(pid: int) -> bool:
    """Ended; a zombie that waits for its parent has ended too."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True
