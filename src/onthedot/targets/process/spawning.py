"""Starting a process that inherits nothing but what it is given, in one step that nothing can interrupt.

By `subprocess`, not by the loop: uvloop lets the child keep copies of its own standard streams, and of those of its
parent's parent, and a start that is cancelled half way leaves it to others to find out what became of it (seen in 80 of
80). This one takes a millisecond until the program runs, or says why it can't; its end is awaited through a descriptor.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from typing import Any

__all__ = ["Process", "signal_group", "signal_name", "spawn"]

LOOK_AGAIN = 0.02
"""Seconds, where there is no descriptor to wait on."""


class Process:
    """A started process. Its `returncode` is None until it has been reaped."""

    def __init__(self, started: subprocess.Popen[bytes]) -> None:
        self.pid = started.pid
        self.returncode: int | None = None
        self._started = started
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._watched = -1
        try:
            self._watched = os.pidfd_open(started.pid)
        except (AttributeError, OSError):  # not on Linux, or no descriptor is left
            self._look()
        else:
            self._loop.add_reader(self._watched, self._reap)

    async def wait(self) -> int:
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def _reap(self) -> None:
        self._loop.remove_reader(self._watched)
        os.close(self._watched)
        self._end()

    def _look(self) -> None:
        if self._started.poll() is None:
            self._loop.call_later(LOOK_AGAIN, self._look)
        else:
            self._end()

    def _end(self) -> None:
        self.returncode = self._started.wait()
        self._ended.set()


def spawn(*argv: str, **options: Any) -> Process:
    """A process in a session of its own, without input unless it is given some. OSError or ValueError: it did not
    start."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return Process(subprocess.Popen(argv, start_new_session=True, close_fds=True, **options))  # noqa: S603


def signal_group(leader: int, number: signal.Signals) -> None:
    """To a process and whatever it started, as far as it stayed in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


def signal_name(number: int) -> str:
    """ "SIGKILL", or "signal 40" for one without a name."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
