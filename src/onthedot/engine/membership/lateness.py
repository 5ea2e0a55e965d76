"""How late this node's runs started, over the last minute: what it says of itself with every beat.

Exact, and cheap under load: a counter per whole millisecond and second instead of a list of all runs.
"""

from __future__ import annotations

from collections import deque

from onthedot.clock import Clock

__all__ = ["Lateness"]

SPAN = 60


class Lateness:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds: deque[tuple[int, dict[int, int]]] = deque()
        self._total: dict[int, int] = {}

    def add(self, lateness_ms: int, at: float) -> None:
        """`at`: when it started, on the monotonic clock."""
        second = int(at)
        if not self._seconds or self._seconds[-1][0] != second:
            self._seconds.append((second, {}))
            self._forget(second)
        counted = self._seconds[-1][1]
        counted[lateness_ms] = counted.get(lateness_ms, 0) + 1
        self._total[lateness_ms] = self._total.get(lateness_ms, 0) + 1

    def percentile(self, share: float) -> int | None:
        """The lateness that `share` (0 … 1) of the runs did not exceed; None when there were none."""
        self._forget(int(self._clock.monotonic()))
        wanted = share * sum(self._total.values())
        seen = 0
        for lateness in sorted(self._total):
            seen += self._total[lateness]
            if seen >= wanted:
                return lateness
        return None

    def _forget(self, second: int) -> None:
        while self._seconds and self._seconds[0][0] <= second - SPAN:
            for lateness, times in self._seconds.popleft()[1].items():
                self._total[lateness] -= times
                if not self._total[lateness]:
                    del self._total[lateness]
