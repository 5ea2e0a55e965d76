"""When each running attempt must have ended, for all of them together.

One heap and one sleeper: a timeout scope of its own cost each run 5 of 28 µs, though nearly none ever fires.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from onthedot.clock import Clock
from onthedot.engine.mailbox import Signal
from onthedot.engine.tuning import DEADLINE_PASSES, INSTANT

__all__ = ["Deadlines", "Entry"]

Entry = list[object]
"""[monotonic instant, order, what to call]; the last is None once it is over."""

_SWEEP = 1000


class Deadlines:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[Entry] = []
        self._order = itertools.count()
        self._over = 0
        self._earlier = Signal()

    def __len__(self) -> int:
        return len(self._heap)

    def set(self, at: float, expired: Callable[[], None]) -> Entry:
        entry: Entry = [at, next(self._order), expired]
        heapq.heappush(self._heap, entry)
        if self._heap[0] is entry:
            self._earlier.set()
        return entry

    def clear(self, entry: Entry) -> None:
        """It ended in time. What is over is swept out once it is most of the heap: an hour's timeout of a run that took
        a second must not keep anything for an hour."""
        entry[2] = None
        self._over += 1
        if self._over > _SWEEP and self._over * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2] is not None]
            heapq.heapify(self._heap)
            self._over = 0

    async def step(self) -> None:
        """Sleep until the first deadline or a new earlier one; call what has expired."""
        wait = self._heap[0][0] - self._clock.monotonic() if self._heap else None  # type: ignore[operator]  # a float
        if wait is None or wait > INSTANT:
            try:
                async with self._clock.timeout(wait):
                    await self._earlier.wait()
            except TimeoutError:
                pass
        until = self._clock.monotonic() + INSTANT
        if self._due(until):
            for _ in range(DEADLINE_PASSES):
                await self._clock.sleep(0)
            self.expire(until)

    def expire(self, until: float) -> None:
        while self._due(until):
            expired = heapq.heappop(self._heap)[2]
            assert callable(expired)
            expired()

    def _due(self, until: float) -> bool:
        """Whether the first that is not over has expired."""
        while self._heap and self._heap[0][2] is None:
            heapq.heappop(self._heap)
            self._over -= 1
        return bool(self._heap) and self._heap[0][0] <= until  # type: ignore[operator]  # a float
