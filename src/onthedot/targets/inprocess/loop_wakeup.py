"""Wakes the event loop of another thread without holding the interpreter lock.

`call_soon_threadsafe` wakes the loop while the caller has the lock. On one core the thread that wakes takes the core at
once, finds the lock taken and gives the core back, and so on, three times before it may go on: 40 µs at each crossing
where 15 do (`perf record -e sched:sched_switch`, 100 crossings a second). `os.eventfd_write` gives the lock away first;
and what the kernel says of a file, a loop passes on in the same pass.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

__all__ = ["LoopWakeup"]


class LoopWakeup:
    """`heard` is called on the loop, once or more often after each `wake`. Who wakes must have ended before it is
    closed: the number of a closed file is soon that of another."""

    def __init__(self, loop: asyncio.AbstractEventLoop, heard: Callable[[], None]) -> None:
        """On the loop's own thread, or before it runs."""
        self._loop = loop
        self._heard = heard
        self._fd = _watched(loop, self._woken)

    def wake(self) -> None:
        """From another thread."""
        if self._fd is None:
            self._loop.call_soon_threadsafe(self._heard)
        else:
            os.eventfd_write(self._fd, 1)

    def close(self) -> None:
        """On the loop's own thread, or when it does not run any more."""
        if self._fd is not None:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = None

    def _woken(self) -> None:
        assert self._fd is not None
        os.eventfd_read(self._fd)  # first: a wake-up from here on is heard again
        self._heard()


def _watched(loop: asyncio.AbstractEventLoop, woken: Callable[[], None]) -> int | None:
    """None: another system, or a loop without files."""
    try:
        fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    except (AttributeError, OSError):
        return None
    try:
        loop.add_reader(fd, woken)
    except NotImplementedError:
        os.close(fd)
        return None
    return fd
