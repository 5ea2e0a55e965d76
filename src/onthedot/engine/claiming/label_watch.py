"""Looks which sets of labels runs ask for in the store: once a second, and when a hint says that something is due. Only
on a node that has labels. The first look is at once, so that a node that joins takes what has waited for it.

It hops through an index from one requirement to the next. Each look finds a number of them, and the next goes on after
the last, so that it costs the same however many there are.
"""

from __future__ import annotations

import random

from onthedot.clock import Clock
from onthedot.engine.claiming.node_offers import NodeOffers
from onthedot.engine.look_times import LookTimes
from onthedot.engine.mailbox import Signal
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.ports import LabelStore
from onthedot.engine.tuning import LABELS_EVERY, LABELS_GAP, LABELS_SEEN
from onthedot.engine.waiting import at_most
from onthedot.errors import StoreUnavailable

__all__ = ["LabelWatch"]


class LabelWatch:
    def __init__(
        self,
        *,
        offers: NodeOffers,
        store: LabelStore,
        clock: Clock,
        rng: random.Random,
        health: StoreHealth,
        look_times: LookTimes,
    ) -> None:
        self.hints = Signal()
        self._offers = offers
        self._store = store
        self._clock = clock
        self._rng = rng
        self._health = health
        self._look_times = look_times
        self._after = ""  # the last one that was seen; none: the next look begins with the first

    async def step(self) -> None:
        try:
            await self.look()
        except StoreUnavailable as error:
            self._health.failed(error)
        await self._clock.sleep(LABELS_GAP)
        await at_most(self._clock, LABELS_EVERY * self._rng.uniform(0.8, 1.0), self.hints.wait())

    async def look(self) -> None:
        found = await self._store.required(self._after, LABELS_SEEN)
        self._after = found[-1] if len(found) >= LABELS_SEEN else ""
        if self._offers.seen(found, self._clock.monotonic()):
            self._look_times.ask()
