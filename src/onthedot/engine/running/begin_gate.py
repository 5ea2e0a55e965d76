"""The gate that at-most-once runs pass, and those that may expire before their first send: that it is sent is committed
before it is, many in one transaction. And those whose work survives the node: what they are about to start is committed
first, so that whoever comes after us knows what to look for.

Refused means that somebody wants it back, or has it: it is given back unsent. No answer means nobody knows: it is asked
again, for as long as it takes or until it expires, because asking twice is harmless and sending without knowing is not.
So is an answer that took too long: the job may have been paused or deleted meanwhile.
"""

from __future__ import annotations

from onthedot.clock import Clock
from onthedot.engine.mailbox import Mailbox
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.ports import BeginStore
from onthedot.engine.running.monitor import Monitor
from onthedot.engine.tuning import BEGIN_VALID
from onthedot.errors import StoreUnavailable

__all__ = ["BeginGate"]


class BeginGate:
    def __init__(
        self,
        node_id: str,
        *,
        store: BeginStore,
        clock: Clock,
        health: StoreHealth,
        backoff: Backoff,
        size: int,
    ) -> None:
        self.mailbox: Mailbox[Monitor] = Mailbox(size)
        self._node_id = node_id
        self._store = store
        self._clock = clock
        self._health = health
        self._backoff = backoff

    async def step(self) -> None:
        waiting = [await self.mailbox.take(), *self.mailbox.take_all()]
        while waiting := self._still_wanted(waiting):
            asked = self._clock.monotonic()
            try:
                allowed = await self._begin(waiting)
            except StoreUnavailable as error:
                self._health.failed(error)
                await self._clock.sleep(self._backoff.delay())
                continue
            self._health.worked()
            self._backoff.reset()
            if self._clock.monotonic() - asked > BEGIN_VALID:
                continue
            for monitor in waiting:
                if monitor.run.id in allowed:
                    monitor.start()
                else:
                    monitor.recall()  # unsent: it goes back, and the store knows what to make of it
            return

    async def _begin(self, waiting: list[Monitor]) -> set[str]:
        allowed = set[str]()
        works = [monitor.work() for monitor in waiting if monitor.survives]
        if works:
            allowed = await self._store.begin_work(self._node_id, works)
        if len(works) < len(waiting):
            fences = [(monitor.run.id, monitor.run.token) for monitor in waiting if not monitor.survives]
            allowed = allowed | await self._store.begin(self._node_id, fences)
        return allowed

    def _still_wanted(self, waiting: list[Monitor]) -> list[Monitor]:
        """Those that were stopped at the gate are over; those that came too late go on to say so, and send nothing."""
        wanted, now = [], self._clock.monotonic()
        for monitor in waiting:
            if monitor.is_unwanted_at(now):
                monitor.start()
            else:
                wanted.append(monitor)
        return wanted
