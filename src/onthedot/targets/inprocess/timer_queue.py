"""Calls that were handed over before their instant: they begin when it comes, without anybody at home having to wake.

At 100 calls a second half of what a firing cost was the thread at home, woken to hand over one call and woken again for
its result, each time with its code and data gone from the caches. Now it hands over what is due within the next moments
at once, and fetches the results of the last ones with it (ADR 0018).
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Generic, TypeVar

from onthedot.clock import Alarm, Clock

__all__ = ["TimerQueue"]

T = TypeVar("T")


class TimerQueue(Generic[T]):
    """Written at home, kept over there. No lock: an entry is whose thread takes it out of `_open`, which is one step
    under the interpreter's; and each side looks at what the other wrote after it has written itself."""

    def __init__(self, clock: Clock, on_due: Callable[[], None]) -> None:
        """`on_due` is called over there when an instant has come: it has to call `due`."""
        self.wakes_at = inf  # the first instant, as it is known over there
        self._clock = clock
        self._on_due = on_due
        self._alarm: Alarm | None = None
        self._set_for = inf
        self._open: dict[T, bool] = {}
        self._arrivals: deque[tuple[float, int, T]] = deque()
        self._heap: list[tuple[float, int, T]] = []
        self._order = itertools.count()

    # at home

    def add(self, at: float, entry: T) -> bool:
        """At this monotonic instant, or right away if it is over. Whether over there they have to be woken for it: they
        would sleep beyond it."""
        self._open[entry] = True
        self._arrivals.append((at, next(self._order), entry))
        return at < self.wakes_at

    def take_back(self, entry: T) -> bool:
        """Whether it has not begun; then it will not."""
        return self._open.pop(entry, False)

    # over there

    def due(self) -> list[T]:
        """What begins now, in the order of the instants; the alarm is set for the first of the others."""
        now, found, heap, arrivals = self._clock.monotonic(), list[T](), self._heap, self._arrivals
        while True:
            while arrivals:
                heappush(heap, arrivals.popleft())
            while heap and heap[0][0] <= now:
                entry = heappop(heap)[2]
                if self._open.pop(entry, False):
                    found.append(entry)
            self.wakes_at = heap[0][0] if heap else inf
            if not arrivals:  # else it came too early to see when we wake, and too late for us to see it
                break
        if self.wakes_at < self._set_for:
            if self._alarm is None:
                self._alarm = self._clock.alarm(self._alarm_went_off)
            self._set_for = self.wakes_at
            self._alarm.set(self.wakes_at - now)
        return found

    def _alarm_went_off(self) -> None:
        self._set_for = inf
        self._on_due()

    def close(self) -> None:
        """When nobody is over there any more."""
        if self._alarm is not None:
            self._alarm.close()
            self._alarm = None
