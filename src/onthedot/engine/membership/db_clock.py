"""The database's time, read off this machine's monotonic clock: never early, without trusting any wall clock.

Answers of beats, claims and polls for orders carry the database's `now`. Monotonic arrival − that stamp is the offset
plus the way back, so the smallest of the last 5 s errs only by the shortest way back, and only late. Stamps are rounded
down to whole milliseconds, those of polls to microseconds, which errs late as well.

The 5 s end when the newest question was sent, not when its answer was read: a process that was frozen for longer reads
an answer as old as that first. If it were all we knew, we would be late by the whole freeze until the next one, and
what ended meanwhile was written as having ended so much before it did (its next try came without any wait).
"""

from __future__ import annotations

from collections import deque
from math import ceil, floor

from onthedot.clock import Clock
from onthedot.telemetry import emit

__all__ = ["JUMP_US", "STEP_US", "WINDOW_US", "DatabaseClock"]

WINDOW_US = 5_000_000
JUMP_US = 50_000
STEP_US = 1_000_000
"""By how much the database's clock must be set for somebody to hear of it."""
_STAMP_US = 1000  # a stamp may say "this millisecond": the truth is up to one later


class DatabaseClock:
    """Microseconds as integers, rounded to the late side: a sleep of what is left ends at or after the instant."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._smallest: deque[tuple[int, int]] = deque()  # (arrival, offset), offsets rising: the head is the minimum
        self.offset_us = 0  # that of the head
        self.known = False  # until the first stamp, and then for good
        self.set_back = 0  # how often the database's clock was set back, by more than clocks are all the time

    def observe(self, stamp_ms: int, sent: float, arrived: float) -> None:
        """The database said it was `stamp_ms` somewhere between these two monotonic instants (seconds)."""
        self.observe_us(stamp_ms * 1000, sent, arrived)

    def observe_us(self, stamp: int, sent: float, arrived: float) -> None:
        arrival = ceil(arrived * 1e6)
        offset = arrival - stamp
        least_possible = floor(sent * 1e6) - stamp - _STAMP_US
        if self._smallest and (self.offset_us < least_possible or offset < self.offset_us - JUMP_US):
            self._tell(self.offset_us - (least_possible if self.offset_us < least_possible else offset))
            self._smallest.clear()  # the database's clock was set: what we knew proves nothing any more
        while self._smallest and self._smallest[-1][1] >= offset:
            self._smallest.pop()
        self._smallest.append((arrival, offset))
        self.known = True
        while self._smallest[0][0] < floor(sent * 1e6) - WINDOW_US:
            self._smallest.popleft()
        self.offset_us = self._smallest[0][1]

    def _tell(self, by_us: int) -> None:
        """It was set by so much, or a little more."""
        if abs(by_us) > STEP_US:
            self.set_back += by_us < 0
            emit("clock.set", by_ms=by_us // 1000)

    def now_us(self) -> int:
        return self.at_us(self._clock.monotonic())

    def at_us(self, monotonic: float) -> int:
        """What the database's clock says at this instant of ours."""
        return floor(monotonic * 1e6) - self.offset_us

    def now_ms(self) -> int:
        """Whole milliseconds, rounded down."""
        return self.now_us() // 1000

    def monotonic_at(self, instant_ms: int) -> float:
        """When, on our clock, this instant of the database's will have come; a microsecond for the rounding."""
        return (instant_ms * 1000 + self.offset_us + 1) / 1e6

    def seconds_until(self, instant_ms: int) -> float:
        """How long to sleep; 0 or less once it has come."""
        return (instant_ms * 1000 - self.now_us()) / 1e6
