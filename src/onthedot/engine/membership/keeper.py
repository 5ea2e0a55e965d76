"""The Keeper: news for this node, and what nodes do for each other: declare the lost, take back their runs.

(The beat has a loop of its own in `heart`, upkeep one in `duties`: none of them may wait for another.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from onthedot.clock import Clock
from onthedot.engine.mailbox import Mailbox, Signal
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.health import Health
from onthedot.engine.membership.peer_beats import Watch
from onthedot.engine.messages import Orders, SchedulerMessage
from onthedot.engine.recording.owned_runs import Holdings
from onthedot.errors import StoreUnavailable
from onthedot.store import News
from onthedot.telemetry import emit

__all__ = ["NEWS", "NewsReader", "NewsStore", "WatchStore", "Watchman"]

NEWS = 0.55
"""Seconds between two looks for orders. The answer to a beat is one too, and as this is a little more than half of the
time between two beats, each is followed by one look. Half of what we promise: nothing starts later than a second after
a cancel, an edit or a pause was acknowledged."""
WATCH = 1.0
"""Seconds between two looks at how the others' beats stand, which needs no store."""
_INSTANT = 1e-6  # floating point: a sleep may end a hair before the sum it was computed from


class NewsStore(Protocol):
    async def news(self, node: str) -> News: ...


class NewsReader:
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
        holdings: Holdings,
        scheduler: Mailbox[SchedulerMessage],
        health: Health,
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
        self._holdings = holdings
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
            if not self._holdings:
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
            await self._scheduler.put(Orders(news.orders, sent))
        else:
            self._heard(sent)

    def _left(self) -> float:
        return self._looked_at + NEWS - self._clock.monotonic()


class WatchStore(Protocol):
    async def declare_lost(self, node: str, beat_seen: int) -> bool: ...

    async def reclaim(self) -> int: ...

    async def notify(self, topic: str) -> None: ...


class Watchman:
    """Declares nodes lost that stood still for a lease, and takes back the running rows of lost nodes.

    Level-triggered: each beat of each node says whether there are such rows, and whoever hears it takes them, also if
    the one who declared the loss died right after.
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
        look: Callable[[], None],
    ) -> None:
        self.orphans = Signal()
        self._node_id = node_id
        self._store = store
        self._clock = clock
        self._watch = watch
        self._health = health
        self._backoff = backoff
        self._look = look

    async def step(self) -> None:
        told = True
        try:
            async with self._clock.timeout(self._until_next()):
                await self.orphans.wait()
        except TimeoutError:
            told = False
        try:
            await self.look_around(told)
        except StoreUnavailable as error:
            self._health.failed(error)
            await self._clock.sleep(self._backoff.delay())
        else:
            self._backoff.reset()

    async def look_around(self, orphans: bool = False) -> None:
        for peer, beat in self._watch.suspects(self._clock.monotonic()):
            if await self._store.declare_lost(peer, beat):
                emit("node.lost", node=peer, by=self._node_id)
                orphans = True
            self._watch.forget(peer)
        if orphans:
            await self._take_back()

    async def _take_back(self) -> None:
        found = 0
        while count := await self._store.reclaim():
            found += count
        if found:
            self._look()
            await self._store.notify("due")

    def _until_next(self) -> float:
        deadline = self._watch.next_deadline()
        return WATCH if deadline is None else min(WATCH, max(0.001, deadline - self._clock.monotonic()))
