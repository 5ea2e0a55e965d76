"""How long functions took of late, and so how many calls may be sent ahead of the one that runs.

What is sent ahead waits behind a call that was expected to be short. Two limits keep that wait small: only functions
that took less than a millisecond of late are sent ahead or waited behind, and no more of them than are expected to take
two milliseconds together.
"""

from __future__ import annotations

__all__ = ["AHEAD", "PATIENCE", "SHORT", "Pace"]

SHORT = 0.001
PATIENCE = 0.002
AHEAD = 64
"""Calls in one worker at most, the one that runs included."""
_CEILING = 0.02  # one call that took an hour must not be remembered for longer than ten that took a moment
_WEIGHT = 1 / 8
_MANY = 10_000


class Pace:
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
