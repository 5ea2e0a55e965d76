"""One time for everything: ms since the run began on the machine's monotonic clock, and how the database's clock stood
against it."""

from __future__ import annotations

import time
from itertools import pairwise

from proof.checker.events import Stepped

__all__ = ["TrueTime"]

UNSURE = 50
"""ms around a step in which a reading may be of before or after it."""


class TrueTime:
    def __init__(self) -> None:
        self.began_mono = time.monotonic_ns() // 1000  # µs
        self.began_real = time.time_ns() // 1000
        self._steps: list[tuple[int, int]] = []  # (true ms, offset ms from then on)
        self.stepped: list[Stepped] = []

    @property
    def now(self) -> int:
        return self.of_mono(time.monotonic_ns() // 1000)

    def of_mono(self, mono_us: int) -> int:
        return (mono_us - self.began_mono) // 1000

    def db_now(self) -> int:
        """The database's clock, in ms since the epoch."""
        return time.time_ns() // 1_000_000 + self.offset(self.now)

    def db_of(self, real_us: int, at: int) -> int:
        """What the database's clock showed when the machine's showed this."""
        return real_us // 1000 + self.offset(at)

    def offset(self, at: int) -> int:
        return next((offset for begin, offset in reversed(self._steps) if begin <= at), 0)

    def step(self, by_ms: int) -> None:
        """The database's clock was set just now."""
        now = self.now
        before = self.offset(now)
        highest = max([self.db_now(), *(step.highest for step in self.stepped)])
        self._steps.append((now, before + by_ms))
        self.stepped.append(Stepped(at=now, by_ms=by_ms, highest=highest, db=self.db_now()))

    def at(self, db_us: int, near: int) -> int:
        """The true time of a reading of the database's clock: of all that it could be, the one nearest to `near`."""
        true = (db_us - self.began_real) // 1000
        spans = [(-(10**12), 0), *self._steps, (10**15, 0)]
        fits = [
            true - offset
            for (begin, offset), (end, _) in pairwise(spans)
            if begin - UNSURE <= true - offset <= end + UNSURE
        ]
        return min(fits or [true], key=lambda at: abs(at - near))
