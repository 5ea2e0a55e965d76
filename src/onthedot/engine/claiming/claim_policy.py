"""When to claim, and for which pools: because somebody says that there is something, or because of what the last claim
left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onthedot.engine.claiming.capacity import Capacity, SlotPool
from onthedot.engine.claiming.timer import Timer
from onthedot.store import Claim

__all__ = ["CALM", "HUNGRY", "PORTION", "ClaimPolicy"]

HUNGRY = 0.05
"""After a claim that filled its limit, look again within this many seconds, even if few slots came free."""
CALM = 0.1
"""Unless what was claimed lasts for twice as long: then a portion has to come free first. At 500 a second a node holds
the thousand that it may, and claimed what had just come free, 40 times a second (ADR 0015)."""
PORTION = 64
"""Runs whose claim takes the loop for a millisecond: what is due meanwhile waits for it."""


class ClaimPolicy:
    def __init__(self, slots: Capacity, timer: Timer, offers: Callable[[], Sequence[str]]) -> None:
        """`offers`: what this node can run at the moment."""
        self._slots = slots
        self._timer = timer
        self._offers = offers
        self._look_wanted = False
        self._more_due: set[str] = set()  # pools whose last claim left something
        self._backlog_left: set[str] = set()  # … what the backlog had no room for
        self._unseen: set[str] = set()  # pools that had no room when there was reason to look

    def look(self) -> None:
        self._look_wanted = True

    def pools(self) -> list[SlotPool]:
        """For which a claim is worth it now."""
        if self._look_wanted:
            self._look_wanted = False
            self._slots.offer(self._offers())
            offering = [pool for pool in self._slots.pools.values() if pool.offers]
            self._unseen = {pool.name for pool in offering if not pool.room and not self._claims_anyway(pool)}
            return [pool for pool in offering if pool.room]
        if not (self._more_due or self._backlog_left or self._unseen):
            return []
        # Only these: to ask each time whether webhooks are due as well took a third of a drain of functions.
        pools = [pool for pool in self._slots.pools.values() if self._wants(pool)]
        self._unseen.difference_update(pool.name for pool in pools)
        return pools

    def fed(self, name: str, limit: int, claim: Claim) -> None:
        """What a claim of `limit` runs for this pool has brought."""
        pool = self._slots.pools[name]
        self._more_due.discard(name)
        self._backlog_left.discard(name)
        pool.calm = False
        if len(claim.runs) >= limit:
            self._more_due.add(name)
            spare = (claim.runs[-1].due_at - claim.now) / 2000  # half of the time until the last of them
            if spare >= CALM:
                pool.calm = True
                pool.want_more(PORTION)
                self._timer.look_within(spare)
            else:
                pool.want_more()
                self._timer.look_within(4 * HUNGRY if pool.holds_ahead else HUNGRY)
        elif claim.next_ready is not None and claim.next_ready > claim.now:
            self._timer.expect_next(name, claim.next_ready)
        elif claim.next_ready is not None:
            if pool.backlog.waits:
                self._backlog_left.add(name)
            elif claim.runs:
                self._more_due.add(name)
            self._timer.look_within(HUNGRY)

    def _wants(self, pool: SlotPool) -> bool:
        name = pool.name
        return (
            (name in self._more_due and pool.has_enough)
            or (name in self._backlog_left and pool.room > 0 and not pool.backlog.waits)
            or (name in self._unseen and pool.room > 0 and bool(pool.offers))
        )

    def _claims_anyway(self, pool: SlotPool) -> bool:
        """It is behind: what is due next comes with the next claim, and that comes with the next free slots."""
        return pool.name in self._more_due and not pool.calm
