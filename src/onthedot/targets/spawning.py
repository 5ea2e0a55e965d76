"""Starting a process that can be cancelled at any instant without leaving one behind.

`create_subprocess_exec` cancelled half way kills what it started without asking, and under uvloop it returns before
that has ended (seen in 80 of 80 cancelled starts; asyncio's own loop waits). So the start is never cancelled: it is
waited for, and what it started is ended in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["kill", "signal_group", "spawn"]

End = Callable[[asyncio.subprocess.Process], Awaitable[None]]
_killing: set[asyncio.Future[None]] = set()  # nobody waits for these; the loop alone would let go of them


async def kill(process: asyncio.subprocess.Process) -> None:
    """At once, and until it has been reaped."""
    signal_group(process.pid, signal.SIGKILL)
    await process.wait()


async def spawn(*argv: str, end: End = kill, **options: Any) -> asyncio.subprocess.Process:
    """A process in a session of its own, without input. `end` is what it meets if the start is cancelled."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*argv, stdin=asyncio.subprocess.DEVNULL, start_new_session=True, **options)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        try:
            await asyncio.wait([starting])
        except asyncio.CancelledError:  # once more: no time for manners
            starting.add_done_callback(_kill_started)
            raise
        if starting.exception() is None:
            await end(starting.result())
        raise


def _kill_started(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        killing = asyncio.ensure_future(kill(starting.result()))
        _killing.add(killing)
        killing.add_done_callback(_killing.discard)


def signal_group(leader: int, number: signal.Signals) -> None:
    """To a process and whatever it started, as far as it stayed in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
