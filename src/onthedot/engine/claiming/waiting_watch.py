"""Looks once a second which destinations runs wait for in the store: this node may have room there, or find that it is
well again, whoever turned them away. Level-triggered: what another node left behind, or this one forgot, is found.

It hops through an index from one destination to the next. Each look finds a number of them, and the next goes on after
the last, so that it costs the same however many there are.
"""

from __future__ import annotations

import random

from onthedot.clock import Clock
from onthedot.engine.claiming.node_offers import NodeOffers
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.ports import DestinationStore
from onthedot.engine.running.destinations import Destinations
from onthedot.engine.tuning import DESTINATIONS_EVERY, DESTINATIONS_SEEN
from onthedot.errors import StoreUnavailable
from onthedot.model.destination import waits_range

__all__ = ["WaitingWatch"]


class WaitingWatch:
    def __init__(
        self,
        *,
        destinations: Destinations,
        offers: NodeOffers,
        store: DestinationStore,
        clock: Clock,
        rng: random.Random,
        health: StoreHealth,
    ) -> None:
        self._destinations = destinations
        self._offers = offers
        self._store = store
        self._clock = clock
        self._rng = rng
        self._health = health
        self._seen: dict[
            str, str
        ] = {}  # by capability, the last one that was seen; none: the next look is at the first

    async def step(self) -> None:
        await self._clock.sleep(DESTINATIONS_EVERY * self._rng.uniform(0.8, 1.0))
        try:
            await self.look()
        except StoreUnavailable as error:
            self._health.failed(error)

    async def look(self) -> None:
        """What expired while it waited is let go, too: whoever claims it sees that it has."""
        capabilities = self._offers.waiting_capabilities()
        if not capabilities:
            return
        ranges = []
        for capability in capabilities:
            low, high = waits_range(capability)
            ranges.append((self._seen.get(capability, low), high))
        found = await self._store.waited_for(ranges, DESTINATIONS_SEEN)
        for capability in capabilities:
            low, high = waits_range(capability)
            here = [requires for requires in found.requires if low < requires < high]
            for requires in here:
                self._destinations.waits(requires)
            if len(here) >= DESTINATIONS_SEEN:
                self._seen[capability] = here[-1]
            else:
                self._seen.pop(capability, None)
        if found.expired:
            await self._store.release_expired_waiting()
