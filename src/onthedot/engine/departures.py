"""Monitors that begin now, a portion in each turn of the loop.

A claim of a thousand runs took the loop for 7 ms, and the next claim, which is four questions and four answers, had to
wait for it before each of them. Now it is on its way while the last one's runs begin.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import islice

from onthedot.engine.monitor import Monitor

__all__ = ["AT_ONCE", "Departures"]

AT_ONCE = 100
"""Half a millisecond's worth: nobody on this loop waits for longer because of us."""


class Departures:
    def __init__(self) -> None:
        self._waiting: deque[Monitor] = deque()

    def begin(self, monitors: Sequence[Monitor]) -> None:
        """The first of them at once (each turn of the loop is lateness), unless others are before them."""
        if not monitors:
            return
        before = len(self._waiting)
        self._waiting.extend(monitors)
        if not before:
            self._go()

    def _go(self) -> None:
        """All of them in the end: one that was stopped meanwhile begins too, and says so."""
        portion = list(islice(self._waiting, AT_ONCE))
        if len(self._waiting) > len(portion):
            asyncio.get_running_loop().call_soon(self._go)
        for monitor in portion:
            self._waiting.popleft()
            monitor.start()
