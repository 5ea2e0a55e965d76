"""Reports of progress, at most one a second for each run: a receiver may report as often as it likes, the database is
written at the pace of people who look at it. The last report is never lost, it comes a moment later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from onthedot.clock import Clock
from onthedot.errors import OnTheDotError

__all__ = ["ProgressReports"]

GAP = 1.0
"""Seconds between two writes for one run."""

Try = tuple[str, int]
Write = Callable[[str, int, dict[str, Any]], Awaitable[None]]


class ProgressReports:
    """By try: a task that writes what was said last, then waits, until nothing more was said meanwhile."""

    def __init__(self, write: Write, clock: Clock) -> None:
        self._write = write
        self._clock = clock
        self._said: dict[Try, dict[str, Any]] = {}
        self._resting: dict[Try, asyncio.Task[None]] = {}

    async def report(self, run_id: str, try_number: int, said: dict[str, Any]) -> None:
        """Raises what the store raises, if it is written at once."""
        key = run_id, try_number
        if key in self._resting:
            self._said[key] = said
            return
        task = self._resting[key] = asyncio.get_running_loop().create_task(self._rest(key))
        try:
            await self._write(run_id, try_number, said)
        except BaseException:
            self._said.pop(key, None)
            self._resting.pop(key, None)
            task.cancel()
            raise

    async def _rest(self, key: Try) -> None:
        try:
            await self._clock.sleep(GAP)
            while (said := self._said.pop(key, None)) is not None:
                try:
                    await self._write(*key, said)
                except OnTheDotError:  # that try is over, or the database is away: nobody waits for the answer
                    return
                await self._clock.sleep(GAP)
        finally:
            self._said.pop(key, None)
            if self._resting.get(key) is asyncio.current_task():
                del self._resting[key]

    async def close(self) -> None:
        """Write what is left, once."""
        tasks, left = list(self._resting.values()), dict(self._said)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for (run_id, try_number), said in left.items():
            try:
                await self._write(run_id, try_number, said)
            except OnTheDotError:
                return
