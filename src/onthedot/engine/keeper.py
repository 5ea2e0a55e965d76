"""The Keeper: orders for this node, and what nodes do for each other: declare the lost, take back their runs.

(The beat has a loop of its own in `heart`, upkeep one in `duties`: none of them may wait for another.)
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

from onthedot.clock import Clock
from onthedot.engine.backoff import Backoff
from onthedot.engine.health import Health
from onthedot.engine.holdings import Holdings
from onthedot.engine.mailbox import Mailbox, Signal
from onthedot.engine.messages import Orders, SchedulerMessage
from onthedot.engine.watch import Watch
from onthedot.errors import StoreUnavailable
from onthedot.store import Order
from onthedot.telemetry import emit

__all__ = ["ORDERS", "RECLAIM", "OrderReader", "OrderStore", "WatchStore", "Watchman"]

ORDERS = 0.5
"""Seconds between two looks; the answer to a beat is one too, so that makes one more a second. Half of what we promise:
nothing starts later than a second after a cancel, an edit or a pause was acknowledged."""
RECLAIM = 1.0
_INSTANT = 1e-6  # floating point: a sleep may end a hair before the sum it was computed from


class OrderStore(Protocol):
    async def orders(self, node: str) -> list[Order]: ...


class OrderReader:
    """Reads what users want of runs that this node has: at once by hint, at the latest after half a second."""

    def __init__(
        self,
        node_id: str,
        *,
        store: OrderStore,
        clock: Clock,
        holdings: Holdings,
        scheduler: Mailbox[SchedulerMessage],
        health: Health,
        backoff: Backoff,
    ) -> None:
        self.hints = Signal()
        self._node_id = node_id
        self._store = store
        self._clock = clock
        self._holdings = holdings
        self._scheduler = scheduler
        self._health = health
        self._backoff = backoff
        self._looked_at = clock.monotonic()

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
        self._looked_at = self._clock.monotonic()
        if not self._holdings:
            return
        try:
            orders = await self._store.orders(self._node_id)
        except StoreUnavailable as error:
            self._health.failed(error)
            await self._clock.sleep(self._backoff.delay())
            return
        self._health.worked()
        self._backoff.reset()
        if orders:
            await self._scheduler.put(Orders(orders))

    def _left(self) -> float:
        return self._looked_at + ORDERS - self._clock.monotonic()


class WatchStore(Protocol):
    async def declare_lost(self, node: str, beat_seen: int) -> bool: ...

    async def reclaim(self) -> int: ...

    async def notify(self, topic: str) -> None: ...


class Watchman:
    """Declares nodes lost that stood still for a lease; each second takes back the running rows of lost nodes.

    Level-triggered: whoever finds such rows takes them, also if the one who declared the loss died right after.
    """

    def __init__(
        self,
        node_id: str,
        *,
        store: WatchStore,
        clock: Clock,
        watch: Watch,
        health: Health,
        backoff: Backoff,
        rng: random.Random,
        look: Callable[[], None],
    ) -> None:
        self._node_id = node_id
        self._store = store
        self._clock = clock
        self._watch = watch
        self._health = health
        self._backoff = backoff
        self._rng = rng
        self._look = look

    async def step(self) -> None:
        await self._clock.sleep(self._until_next())
        try:
            await self.look_around()
        except StoreUnavailable as error:
            self._health.failed(error)
            await self._clock.sleep(self._backoff.delay())
        else:
            self._backoff.reset()

    async def look_around(self) -> None:
        for peer, beat in self._watch.suspects(self._clock.monotonic()):
            if await self._store.declare_lost(peer, beat):
                emit("node.lost", node=peer, by=self._node_id)
            self._watch.forget(peer)
        found = 0
        while count := await self._store.reclaim():
            found += count
        if found:
            self._look()
            await self._store.notify("due")

    def _until_next(self) -> float:
        wait = RECLAIM * self._rng.uniform(0.8, 1.0)
        deadline = self._watch.next_deadline()
        if deadline is not None:
            wait = min(wait, max(0.001, deadline - self._clock.monotonic()))
        return wait
