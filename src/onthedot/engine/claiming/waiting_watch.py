"""Looks once a second which destinations and shares runs wait for in the store: this node may have room there, or find
that a destination is well again, whoever turned them away. Level-triggered: what another node left behind, or this
one forgot, is found.

It hops through an index from one to the next. Each look finds a number of them, and the next goes on after
the last, so that it costs the same however many there are.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from onthedot.clock import Clock
from onthedot.engine.claiming.node_offers import NodeOffers
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.ports import DestinationStore
from onthedot.engine.tuning import DESTINATIONS_EVERY, DESTINATIONS_SEEN
from onthedot.errors import StoreUnavailable
from onthedot.model.destination import kind_range, waits_range

__all__ = ["WaitingWatch"]


class WaitingWatch:
    def __init__(
        self,
        *,
        waits: Callable[[str], None],
        offers: NodeOffers,
        sharing: frozenset[str] = frozenset(),
        store: DestinationStore,
        clock: Clock,
        rng: random.Random,
        health: StoreHealth,
    ) -> None:
        """`waits` is told what runs require that wait. `sharing`: kinds whose workers jobs have shares of."""
        self._waits = waits
        self._offers = offers
        self._sharing = sorted(sharing)
        self._store = store
        self._clock = clock
        self._rng = rng
        self._health = health
        self._seen: dict[str, str] = {}  # by range, the last one that was seen; none: the next look is at the first

    async def step(self) -> None:
        await self._clock.sleep(DESTINATIONS_EVERY * self._rng.uniform(0.8, 1.0))
        try:
            await self.look()
        except StoreUnavailable as error:
            self._health.failed(error)

    async def look(self) -> None:
        """What expired while it waited is let go, too: whoever claims it sees that it has."""
        ranges = [waits_range(capability) for capability in self._offers.waiting_capabilities()]
        ranges += [kind_range(name) for name in self._sharing]
        if not ranges:
            return
        found = await self._store.waited_for(
            [(self._seen.get(low, low), high) for low, high in ranges], DESTINATIONS_SEEN
        )
        for low, high in ranges:
            here = [requires for requires in found.requires if low < requires < high]
            for requires in here:
                self._waits(requires)  # what waits for nothing is passed over there
            if len(here) >= DESTINATIONS_SEEN:
                self._seen[low] = here[-1]
            else:
                self._seen.pop(low, None)
        if found.expired:
            await self._store.release_expired_waiting()
