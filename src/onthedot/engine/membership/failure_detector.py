"""Finds lost nodes: a beat that stood still for a lease, and the running rows that a lost node left behind."""

from __future__ import annotations

from onthedot.clock import Clock
from onthedot.engine.look_times import LookTimes
from onthedot.engine.mailbox import Signal
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.membership.peer_beats import PeerBeats
from onthedot.engine.ports import WatchStore
from onthedot.engine.tuning import WATCH_EVERY
from onthedot.errors import StoreUnavailable
from onthedot.telemetry import emit

__all__ = ["FailureDetector"]


class FailureDetector:
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
        watch: PeerBeats,
        health: StoreHealth,
        backoff: Backoff,
        look_times: LookTimes,
    ) -> None:
        self.orphans = Signal()
        self.duty_free = Signal()  # perhaps: whoever was lost may have had it
        self._node_id = node_id
        self._store = store
        self._clock = clock
        self._watch = watch
        self._health = health
        self._backoff = backoff
        self._look_times = look_times

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
                self.duty_free.set()
            self._watch.forget(peer)
        if orphans:
            await self._take_back()

    async def _take_back(self) -> None:
        found = 0
        while count := await self._store.reclaim():
            found += count
        if found:
            self._look_times.open_seen()  # some of them, perhaps
            self._look_times.ask()
            await self._store.notify("due")

    def _until_next(self) -> float:
        deadline = self._watch.next_deadline()
        return WATCH_EVERY if deadline is None else min(WATCH_EVERY, max(0.001, deadline - self._clock.monotonic()))
