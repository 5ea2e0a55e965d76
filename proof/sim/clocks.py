"""Time as each part of the world sees it. What is true is the loop's time; nobody in the world reads that."""

from __future__ import annotations

import asyncio

from onthedot.clock import SystemClock
from proof.sim.loop import VirtualLoop

__all__ = ["DatabaseTime", "ProcessClock"]

HAIR = 1e-3
"""µs that a sum of sleeps may end before its instant."""


class DatabaseTime(SystemClock):
    """The database's clock. An operator, or a failover to another machine, may set it."""

    def __init__(self, loop: VirtualLoop, start_ms: int) -> None:
        self._loop = loop
        self._start_ms = start_ms
        self.highest = start_ms

    def now_ms(self) -> int:  # not by way of now_us: statements call it 20,000 times a seed
        return self._start_ms + int(self._loop.now * 1e6 + HAIR) // 1000

    def now_us(self) -> int:
        return self._start_ms * 1000 + int(self._loop.now * 1e6 + HAIR)

    def monotonic(self) -> float:
        return self._loop.now

    def step(self, by_ms: int) -> None:
        self.highest = max(self.highest, self.now_ms())
        self._start_ms += by_ms


class ProcessClock(SystemClock):
    """A machine's clocks: the wall clock is wrong and jumps, the monotonic one began at another moment."""

    def __init__(self, loop: VirtualLoop, wall_ms: int, began: float) -> None:
        self._loop = loop
        self._wall_ms = wall_ms
        self._began = began

    def now_ms(self) -> int:
        return self.now_us() // 1000

    def now_us(self) -> int:
        return self._wall_ms * 1000 + int(self._loop.now * 1e6)

    def monotonic(self) -> float:
        return self._began + self._loop.now

    def jump(self, by_ms: int) -> None:
        self._wall_ms += by_ms

    async def sleep(self, seconds: float) -> None:
        await (self._loop.pause(seconds) if seconds > 0 else asyncio.sleep(0))
