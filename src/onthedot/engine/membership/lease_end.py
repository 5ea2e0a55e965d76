"""What happens when the lease ends: runs of jobs that must not run twice at once are stopped.

From one lease after our last beat on, another node may declare us lost and start what we run. For most runs that is
what "at least once" means. But a job whose runs may not overlap promises more, so what still runs of those is stopped a
second before (`LEASE_MARGIN`): the connection is closed, the worker process killed, the command terminated and half a
second later killed, the coroutine cancelled. Only a thread of an embedding program can't be stopped.
"""

from __future__ import annotations

from onthedot.clock import Clock
from onthedot.engine.mailbox import Mailbox
from onthedot.engine.membership.lease import Lease
from onthedot.engine.messages import LEASE_ENDED, DispatcherMessage
from onthedot.engine.tuning import LEASE_POLL, STOP_AGAIN

__all__ = ["LeaseEnd"]


class LeaseEnd:
    def __init__(self, *, clock: Clock, lease: Lease, dispatcher: Mailbox[DispatcherMessage]) -> None:
        self._clock = clock
        self._lease = lease
        self._dispatcher = dispatcher

    async def step(self) -> None:
        left = self._lease.left()
        if left > 0:
            await self._clock.sleep(left)  # it may have been renewed meanwhile
            return
        self._dispatcher.merge(LEASE_ENDED)
        await self._clock.sleep(STOP_AGAIN)
        if self._lease.left() <= 0:
            self._dispatcher.merge(LEASE_ENDED)
        while self._lease.left() <= 0:
            await self._clock.sleep(LEASE_POLL)
