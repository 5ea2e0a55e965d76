"""What happens when the lease ends: runs of jobs that must not run twice at once are stopped.

From one lease after our last beat on, another node may declare us lost and start what we run. For most runs that is
what "at least once" means. But a job whose runs may not overlap promises more, so what still runs of those is stopped a
second before (`lease.MARGIN`): the connection is closed, the worker process killed, the command terminated and half a
second later killed, the coroutine cancelled. Only a thread of an embedding program can't be stopped.
"""

from __future__ import annotations

from collections.abc import Callable

from onthedot.clock import Clock
from onthedot.engine.membership.lease import MARGIN, Lease

__all__ = ["HASTE", "LeaseEnd"]

HASTE = MARGIN / 2
"""Seconds for what was told to stop; then it is told again, and not asked any more."""
_LOOK = 0.25


class LeaseEnd:
    def __init__(self, *, clock: Clock, lease: Lease, stop: Callable[[], None]) -> None:
        self._clock = clock
        self._lease = lease
        self._stop = stop

    async def step(self) -> None:
        left = self._lease.left()
        if left > 0:
            await self._clock.sleep(left)  # it may have been renewed meanwhile
            return
        self._stop()
        await self._clock.sleep(HASTE)
        if self._lease.left() <= 0:
            self._stop()
        while self._lease.left() <= 0:
            await self._clock.sleep(_LOOK)
