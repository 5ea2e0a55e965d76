"""Polls for orders: what users want of runs that this node has, and the database's time with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from onthedot.clock import Clock
from onthedot.engine.mailbox import Mailbox, Signal
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.messages import DispatcherMessage, OrdersRead
from onthedot.engine.recording.owned_runs import OwnedRuns
from onthedot.errors import StoreUnavailable
from onthedot.store import News

__all__ = ["NEWS", "NewsStore", "OrderPoller"]

NEWS = 0.55
"""Seconds between two looks for orders. The answer to a beat is one too, and as this is a little more than half of the
time between two beats, each is followed by one look. Half of what we promise: nothing starts later than a second after
a cancel, an edit or a pause was acknowledged."""
_INSTANT = 1e-6  # floating point: a sleep may end a hair before the sum it was computed from


class NewsStore(Protocol):
    async def news(self, node: str) -> News: ...


class OrderPoller:
    """Reads what users want of runs that this node has: at once by hint, at the latest after half a second.

    And the time, which beats and claims tell as well, but those are transactions: the stamp is taken before the commit
    and the disk, and arrives after them. A node that had only those was late by that much with every run.
    """

    def __init__(
        self,
        node_id: str,
        *,
        store: NewsStore,
        clock: Clock,
        time: DatabaseClock,
        owned: OwnedRuns,
        scheduler: Mailbox[DispatcherMessage],
        health: StoreHealth,
        backoff: Backoff,
        heard: Callable[[float], None] = lambda sent: None,
    ) -> None:
        """`heard` is told when there were no orders; of those that there are, when they are carried out."""
        self.hints = Signal()
        self._heard = heard
        self._node_id = node_id
        self._store = store
        self._clock = clock
        self._time = time
        self._owned = owned
        self._scheduler = scheduler
        self._health = health
        self._backoff = backoff
        self._looked_at = clock.monotonic() - NEWS  # the first look at once: for the time

    def beat_said(self, there_are: bool) -> None:
        """A beat has looked whether there are any."""
        self._looked_at = self._clock.monotonic()
        if there_are:
            self.hints.ring()

    async def step(self) -> None:
        try:
            async with self._clock.timeout(self._left()):
                await self.hints.wait()
        except TimeoutError:
            if self._left() > _INSTANT:
                return  # a beat came in between
        else:
            if not self._owned:
                return  # there can be no orders, and the time is asked for in its turn
        self._looked_at = sent = self._clock.monotonic()
        try:
            news = await self._store.news(self._node_id)
        except StoreUnavailable as error:
            self._health.failed(error)
            await self._clock.sleep(self._backoff.delay())
            return
        self._time.observe_us(news.now_us, sent, self._clock.monotonic())
        self._health.worked()
        self._backoff.reset()
        if news.orders:
            await self._scheduler.put(OrdersRead(news.orders, sent))
        else:
            self._heard(sent)

    def _left(self) -> float:
        return self._looked_at + NEWS - self._clock.monotonic()
