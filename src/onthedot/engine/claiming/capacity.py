"""How much this node can run of each kind, as the kind's profile says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from onthedot.engine.running.slot_pool import SlotPool
from onthedot.model.labels import type_of
from onthedot.model.node import SlotUse
from onthedot.model.run import ClaimedRun

__all__ = ["Capacity", "pool_of"]


def pool_of(offer: str) -> str:
    """Which room a run takes: "function:reports" → "function"; also "container@<place>" → "container"."""
    return type_of(offer)


class Capacity:
    def __init__(
        self,
        capabilities: Iterable[str],
        *,
        capacities: dict[str, int],
        default: int,
        hold_most: int,
        ahead: Callable[[str], int] = lambda name: 0,
    ) -> None:
        """`ahead`: how many more than its capacity a kind takes at this moment."""
        self.pools: dict[str, SlotPool] = {}
        self._capacities = capacities
        self._default = default
        self._hold_most = hold_most
        self._ahead = ahead
        self._capabilities: Sequence[str] = ()
        self.set_capabilities(list(capabilities))

    def set_capabilities(self, capabilities: Sequence[str]) -> bool:
        """What the node can run now; whether that has changed. A program may register functions while it runs, and a
        jobs file may name new ones. A pool that has none left stays: what it runs must be counted to its end."""
        if capabilities == self._capabilities:
            return False
        self._capabilities = capabilities
        grouped: dict[str, list[str]] = {name: [] for name in self.pools}
        for capability in capabilities:
            grouped.setdefault(pool_of(capability), []).append(capability)
        for name, members in grouped.items():
            if name not in self.pools:
                capacity = self._capacities.get(name, self._default)
                self.pools[name] = SlotPool(name, members, capacity, self._hold_most, self._ahead)
            self.pools[name].capabilities = members
        return True

    def of(self, target_type: str) -> SlotPool:
        """A job may have got a target of another kind since the claim looked: it must be counted somewhere."""
        return self.pools.get(target_type) or next(iter(self.pools.values()))

    def of_run(self, run: ClaimedRun) -> SlotPool:
        """Asked for each run several times: as one call."""
        return self.pools.get(run.spec.target.type) or next(iter(self.pools.values()))

    @property
    def capacity(self) -> int:
        return sum(pool.capacity for pool in self.pools.values() if pool.capabilities)

    @property
    def lacking(self) -> str | None:
        """What this machine has run out of, and how much less runs for it; None: nothing."""
        return (
            "; ".join(
                f"{pool.lacking}; {pool.name} concurrency lowered to {pool.capacity}"
                for pool in self.pools.values()
                if pool.lacking is not None
            )
            or None
        )

    @property
    def use(self) -> dict[str, SlotUse]:
        """By kind, as far as this node runs it."""
        return {pool.name: SlotUse(pool.running, pool.capacity) for pool in self.pools.values() if pool.capabilities}

    @property
    def held(self) -> int:
        return sum(pool.held for pool in self.pools.values())

    @property
    def running(self) -> int:
        return sum(pool.running for pool in self.pools.values())
