"""Polls for orders: what users want of runs that this node has, and the database's time with it."""

from __future__ import annotations

from collections.abc import Sized

from onthedot.clock import Clock
from onthedot.engine.mailbox import Mailbox, Signal
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.membership.lease import Lease
from onthedot.engine.messages import DispatcherMessage, OrdersRead
from onthedot.engine.ports import OrderStore
from onthedot.engine.tuning import INSTANT, ORDERS_EVERY
from onthedot.errors import StoreUnavailable

__all__ = ["OrderPoller"]


class OrderPoller:
    """Reads what users want of runs that this node has: at once by hint, at the latest after half a second.

    And the time, which beats and claims tell as well, but those are transactions: the stamp is taken before the commit
    and the disk, and arrives after them. A node that had only those was late by that much with every run.
    """

    def __init__(
        self,
        node_id: str,
        *,
        store: OrderStore,
        clock: Clock,
        time: DatabaseClock,
        lease: Lease,
        owned: Sized,
        dispatcher: Mailbox[DispatcherMessage],
        health: StoreHealth,
        backoff: Backoff,
    ) -> None:
        """The lease is told when there are no orders; otherwise the Dispatcher tells it once they are carried out."""
        self.hints = Signal()
        self._node_id = node_id
        self._store = store
        self._clock = clock
        self._time = time
        self._lease = lease
        self._owned = owned
        self._dispatcher = dispatcher
        self._health = health
        self._backoff = backoff
        self._looked_at = clock.monotonic() - ORDERS_EVERY  # the first look at once: for the time

    def beat_said(self, there_are: bool) -> None:
        """A beat has looked whether there are any."""
        self._looked_at = self._clock.monotonic()
        if there_are:
            self.hints.set()

    async def step(self) -> None:
        try:
            async with self._clock.timeout(self._left()):
                await self.hints.wait()
        except TimeoutError:
            if self._left() > INSTANT:
                return  # a beat came in between
        else:
            if not self._owned:
                return  # there can be no orders, and the time is asked for in its turn
        self._looked_at = sent = self._clock.monotonic()
        try:
            polled = await self._store.poll_orders(self._node_id)
        except StoreUnavailable as error:
            self._health.failed(error)
            await self._clock.sleep(self._backoff.delay())
            return
        self._time.observe_us(polled.now_us, sent, self._clock.monotonic())
        self._health.worked()
        self._backoff.reset()
        if polled.orders:
            await self._dispatcher.put(OrdersRead(polled.orders, sent))
        else:
            self._lease.heard(sent)

    def _left(self) -> float:
        return self._looked_at + ORDERS_EVERY - self._clock.monotonic()
