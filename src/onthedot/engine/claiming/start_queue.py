"""Monitors that begin now, a portion in each turn of the loop.

A claim of a thousand runs took the loop for 7 ms, and the next claim, which is four questions and four answers, had to
wait for it before each of them. Now it is on its way while the last one's runs begin.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from onthedot.engine.running.monitor import Monitor
from onthedot.engine.tuning import STARTS_PER_TURN

__all__ = ["StartQueue"]


class StartQueue:
    def __init__(self, crashed: Callable[[BaseException], None]) -> None:
        """`crashed` hears of a Monitor that could not even begin: a bug, and the end of the node."""
        self._waiting: deque[Monitor] = deque()
        self._crashed = crashed

    def begin(self, monitors: Sequence[Monitor]) -> None:
        """The first of them at once (each turn of the loop is lateness), unless others are before them."""
        if not self._waiting and len(monitors) <= STARTS_PER_TURN:
            self._start(monitors)
            return
        before = len(self._waiting)
        self._waiting.extend(monitors)
        if not before:
            self._go()

    def hurry(self) -> None:
        """All of them now: they have been stopped, and each of them has to say so."""
        self._start(self._waiting.popleft() for _ in range(len(self._waiting)))

    def _go(self) -> None:
        """All of them in the end: one that was stopped meanwhile begins too, and says so."""
        self._start(self._waiting.popleft() for _ in range(min(STARTS_PER_TURN, len(self._waiting))))
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._go)

    def _start(self, monitors: Iterable[Monitor]) -> None:
        for monitor in monitors:
            try:
                monitor.start()
            except Exception as error:
                self._crashed(error)
