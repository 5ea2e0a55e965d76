"""Starting a process that can be cancelled at any instant without leaving one behind.

`create_subprocess_exec` cancelled half way leaves the process running under uvloop (and kills it under asyncio's own
loop): so the start is never cancelled, it is waited for and what it started is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import Any

__all__ = ["signal_group", "spawn"]


async def spawn(*argv: str, **options: Any) -> asyncio.subprocess.Process:
    """A process in a session of its own, without input."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(*argv, stdin=asyncio.subprocess.DEVNULL, start_new_session=True, **options)
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_kill_started)  # also if we are cancelled once more
        await asyncio.wait([starting])
        if starting.exception() is None:
            await starting.result().wait()
        raise


def _kill_started(starting: asyncio.Future[asyncio.subprocess.Process]) -> None:
    if not starting.cancelled() and starting.exception() is None:
        signal_group(starting.result().pid, signal.SIGKILL)


def signal_group(leader: int, number: signal.Signals) -> None:
    """To a process and whatever it started, as far as it stayed in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
