"""Looking again and again for something that does not answer, and not at all while it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

__all__ = ["Reconnection"]

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
OPEN_WITHIN = 2.0


class Reconnection:
    """Kept by a task of its own, from `open` to `close`. `look`: whether it answers now; never raises. `answers`: what
    the last look, or a call since then, found."""

    def __init__(self, look: Callable[[], Awaitable[bool]], answers: Callable[[], bool], name: str) -> None:
        self._look, self._answers, self._name = look, answers, name
        self._lost = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """What hangs must not hold up the node."""
        with suppress(TimeoutError):
            async with asyncio.timeout(OPEN_WITHIN):
                await self._look()
        self._task = asyncio.create_task(self._keep(), name=self._name)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def lost(self) -> None:
        """It does not answer any more: `answers` says so, too."""
        self._lost.set()

    async def _keep(self) -> None:
        pause = FIRST_PAUSE
        while True:
            if not self._answers() and not await self._look():
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            pause = FIRST_PAUSE
            self._lost.clear()
            await self._lost.wait()
            await asyncio.sleep(pause)  # one that answers this and nothing else must not be asked without a pause
