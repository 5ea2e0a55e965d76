"""How long functions took of late, and so how many calls may be sent ahead of the one that runs.

What is sent ahead waits behind a call that was expected to be short. Two limits keep that wait small: only functions
that took less than a millisecond of late are sent ahead or waited behind, and no more of them than are expected to take
two milliseconds together.

Behind these the pool may be given what it will get through in a moment, as it went of late (`Flow`): a claim of a
hundred runs costs the database almost what one of a thousand does.
"""

from __future__ import annotations

__all__ = ["AHEAD", "BRIEF", "HANGS", "PATIENCE", "SHORT", "DurationEstimates", "Throughput"]

SHORT = 0.001
PATIENCE = 0.002
BRIEF = 0.01
"""Seconds: whoever waits for a worker that runs such functions is not late. Less than the ceiling: what was never
called is not brief."""
HANGS = 5 * BRIEF
"""Seconds after which a call that has not ended makes its function one that is not brief, for as long as it goes on."""
AHEAD = 64
"""Calls in one worker at most, the one that runs included."""
MOMENT = 0.25
"""Seconds that the last of the calls which were given to a pool is expected to wait."""
MOST = 1000
_WINDOW = 0.02
_IDLE = 0.2  # a window that is so long was not one of work alone
_CEILING = 0.02  # one call that took an hour must not be remembered for longer than ten that took a moment
_WEIGHT = 1 / 8
_MANY = 10_000


class DurationEstimates:
    """Seconds a call of each function takes, on a sliding mean; what was never called is expected to take long."""

    def __init__(self) -> None:
        self._by_function: dict[str, float] = {}
        self.mean = _CEILING  # of all functions

    def expected(self, function: str) -> float:
        return self._by_function.get(function, _CEILING)

    def took(self, function: str, seconds: float) -> None:
        seconds = min(seconds, _CEILING)
        before = self._by_function.get(function)
        if before is None and len(self._by_function) >= _MANY:
            self._by_function.clear()  # names come from jobs: no bound but this
        self._by_function[function] = seconds if before is None else before + (seconds - before) * _WEIGHT
        self.mean += (seconds - self.mean) * _WEIGHT

    @property
    def ahead(self) -> int:
        """How many calls a worker may hold behind the one that runs, as calls went of late."""
        return min(AHEAD - 1, int(PATIENCE / max(self.mean, 1e-6))) if self.mean < SHORT else 0


class Throughput:
    """How many calls all processes got through of late, and so how many may be waiting for them."""

    def __init__(self) -> None:
        self.ended = 0  # counted up by whoever hears of an end
        self._since = 0.0
        self._per_second = 0.0

    def look(self, now: float, *, busy: bool) -> None:
        """Now and then while calls run. `busy`: there were always more to run, so that this is all they can."""
        elapsed = now - self._since
        if elapsed < _WINDOW:
            return
        if elapsed < _IDLE:
            rate = self.ended / elapsed
            if busy or rate > self._per_second:
                self._per_second += (rate - self._per_second) / 4
        self._since, self.ended = now, 0

    @property
    def soon(self) -> int:
        return min(MOST, int(self._per_second * MOMENT))
