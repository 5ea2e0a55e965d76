"""Monitors that begin now, a portion in each turn of the loop.

A claim of a thousand runs took the loop for 7 ms, and the next claim, which is four questions and four answers, had to
wait for it before each of them. Now it is on its way while the last one's runs begin.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from onthedot.engine.running.monitor import Monitor
from onthedot.engine.tuning import STARTS_PER_TURN

__all__ = ["StartQueue"]


class StartQueue:
    def __init__(self, crashed: Callable[[BaseException], None]) -> None:
        """`crashed` hears of a Monitor that could not even begin: a bug, and the end of the node."""
        self._waiting: deque[Monitor] = deque()
        self._is_busy = False
        self._crashed = crashed

    def begin(self, monitors: Sequence[Monitor]) -> None:
        """The first of them at once (each turn of the loop is lateness), unless others are before them. One that ends
        at its start may free a slot for the next, which comes here again and waits for its turn."""
        self._waiting.extend(monitors)
        if not self._is_busy:
            self._go()

    def _go(self) -> None:
        """What was stopped meanwhile is over, and does not begin."""
        self._is_busy = True
        for _ in range(min(STARTS_PER_TURN, len(self._waiting))):
            try:
                self._waiting.popleft().start()
            except Exception as error:
                self._crashed(error)
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._go)
        else:
            self._is_busy = False
