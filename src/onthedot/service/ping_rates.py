"""How often one job may report: a bucket that fills by one a second, on each node for itself."""

from __future__ import annotations

from onthedot.clock import Clock

__all__ = ["PingRates"]

BURST = 60
PER_SECOND = 1.0
REMEMBERED = 10_000


class PingRates:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[int, tuple[float, float]] = {}  # left, and when that was so

    def wait_for(self, job_id: int) -> float:
        """Seconds until it may report; 0.0: now, and that is counted."""
        now = self._clock.monotonic()
        left, then = self._buckets.pop(job_id, (float(BURST), now))
        left = min(float(BURST), left + (now - then) * PER_SECOND)
        wait = 0.0 if left >= 1.0 else (1.0 - left) / PER_SECOND
        self._buckets[job_id] = (left if wait else left - 1.0), now
        if len(self._buckets) > REMEMBERED:  # who reported longest ago has a full bucket by now
            del self._buckets[next(iter(self._buckets))]
        return wait
