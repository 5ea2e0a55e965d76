"""The database's time, read off this machine's monotonic clock: never early, without trusting any wall clock.

Answers of beats, claims and questions for news carry the database's `now`. Monotonic arrival − that stamp is the offset
plus the way back, so the smallest of the last 5 s errs only by the shortest way back, and only late. Stamps are rounded
down to whole milliseconds, those of news to microseconds, which errs late as well.
"""

from __future__ import annotations

from collections import deque
from math import ceil, floor

from onthedot.clock import Clock

__all__ = ["JUMP_US", "WINDOW_US", "DatabaseClock"]

WINDOW_US = 5_000_000
JUMP_US = 50_000
_STAMP_US = 1000  # a stamp may say "this millisecond": the truth is up to one later


class DatabaseClock:
    """Microseconds as integers, rounded to the late side: a sleep of what is left ends at or after the instant."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._smallest: deque[tuple[int, int]] = deque()  # (arrival, offset), offsets rising: the head is the minimum
        self.known = False  # until the first stamp, and then for good

    def observe(self, stamp_ms: int, sent: float, arrived: float) -> None:
        """The database said it was `stamp_ms` somewhere between these two monotonic instants (seconds)."""
        self.observe_us(stamp_ms * 1000, sent, arrived)

    def observe_us(self, stamp: int, sent: float, arrived: float) -> None:
        arrival = ceil(arrived * 1e6)
        offset = arrival - stamp
        least_possible = floor(sent * 1e6) - stamp - _STAMP_US
        if self._smallest and (self.offset_us < least_possible or offset < self.offset_us - JUMP_US):
            self._smallest.clear()  # the database's clock was set: what we knew proves nothing any more
        while self._smallest and self._smallest[-1][1] >= offset:
            self._smallest.pop()
        self._smallest.append((arrival, offset))
        self.known = True
        while self._smallest[0][0] < arrival - WINDOW_US:
            self._smallest.popleft()

    @property
    def offset_us(self) -> int:
        return self._smallest[0][1]

    def now_us(self) -> int:
        return self.at_us(self._clock.monotonic())

    def at_us(self, monotonic: float) -> int:
        """What the database's clock says at this instant of ours."""
        return floor(monotonic * 1e6) - self._smallest[0][1]

    def now_ms(self) -> int:
        """Whole milliseconds, rounded down."""
        return self.now_us() // 1000

    def monotonic_at(self, instant_ms: int) -> float:
        """When, on our clock, this instant of the database's will have come; a microsecond for the rounding."""
        return (instant_ms * 1000 + self._smallest[0][1] + 1) / 1e6

    def seconds_until(self, instant_ms: int) -> float:
        """How long to sleep; 0 or less once it has come."""
        return (instant_ms * 1000 - self.now_us()) / 1e6
