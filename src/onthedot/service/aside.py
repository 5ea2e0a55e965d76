"""Work that would hold the loop, done beside it: in one thread, in portions.

Beats, firings and all other answers share the loop with what a request asks for. A thread that computes gives the
interpreter back every few milliseconds, a loop that computes does not. One thread, so that the loop waits for one
other at most; portions, so that those who ask at the same time take turns.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

__all__ = ["FEW_JOBS", "SMALL_BYTES", "Aside"]

P = ParamSpec("P")
T = TypeVar("T")
SMALL_BYTES = 16 * 1024
"""A body that can be worked on right away: a few milliseconds, whatever it holds."""
FEW_JOBS = 20
"""Jobs that are checked right away: one or two milliseconds, in which nothing fires. (200 were 6 ms.)"""
PORTION_SECONDS = 0.03


class Aside:
    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="onthedot-work")
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, lambda: context.run(work, *args, **kwargs)
        )

    async def collect(self, items: Iterator[T]) -> list[T]:
        """All of them, some at a time."""
        found: list[T] = []
        while await self.run(_some, items, found):
            pass
        return found

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None


def _some(items: Iterator[T], found: list[T]) -> bool:
    """Whether there may be more."""
    end = time.monotonic() + PORTION_SECONDS
    for item in items:
        found.append(item)
        if time.monotonic() > end:
            return True
    return False
