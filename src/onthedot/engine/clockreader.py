"""Asks the database for its time, and for nothing else.

Beats and claims tell it as well, but they are transactions: the stamp is taken before the commit and the disk, and
arrives after them. A node that had only those was late by that much with every run. It is a loop of its own, because
nothing depends on it: while it gets no answer, the others' stamps have to do.
"""

from __future__ import annotations

import random
from typing import Protocol

from onthedot.clock import Clock
from onthedot.engine.clockwork import DatabaseClock
from onthedot.errors import StoreUnavailable

__all__ = ["EVERY", "ClockReader", "TimeStore"]

EVERY = 0.5
"""Seconds, at random up to half as much more or less. A stamp is rounded down to a millisecond, and the best of the ten
that the window holds is off by a tenth of one."""


class TimeStore(Protocol):
    async def now(self) -> int: ...


class ClockReader:
    def __init__(self, *, store: TimeStore, clock: Clock, time: DatabaseClock, rng: random.Random) -> None:
        self._store = store
        self._clock = clock
        self._time = time
        self._rng = rng

    async def step(self) -> None:
        sent = self._clock.monotonic()
        try:
            now = await self._store.now()
        except StoreUnavailable:
            pass  # whoever needs the store says so
        else:
            self._time.observe(now, sent, self._clock.monotonic())
        await self._clock.sleep(EVERY * self._rng.uniform(0.5, 1.5))
