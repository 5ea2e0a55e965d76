"""When to claim, and for which pools: because it is time to look, or because of what the last claim left behind.

It decides and calls nobody: what the Timer must know is returned as a `NextLook`.
"""

from __future__ import annotations

from collections.abc import Sequence

from onthedot.engine.claiming.capacity import Capacity
from onthedot.engine.look_times import NextLook
from onthedot.engine.running.slot_pool import SlotPool
from onthedot.engine.tuning import CLAIM_AGAIN, CLAIM_AGAIN_AHEAD, CLAIM_PORTION, HELD_LASTS
from onthedot.store import Claim

__all__ = ["ClaimPolicy"]

_NOTHING_IN_SIGHT = NextLook()


class ClaimPolicy:
    def __init__(self, slots: Capacity) -> None:
        self._slots = slots
        self._look_wanted = False
        self._more_due: set[str] = set()  # pools whose last claim left something
        self._backlog_left: set[str] = set()  # … what the backlog had no room for
        self._unseen: set[str] = set()  # pools that had no room when there was reason to look

    def look(self, capabilities: Sequence[str]) -> None:
        """There may be something for any pool. `capabilities`: what this node can run at the moment."""
        self._look_wanted = True
        self._slots.set_capabilities(capabilities)

    def pools(self) -> list[SlotPool]:
        """For which a claim is worth it now."""
        if self._look_wanted:
            self._look_wanted = False
            able = [pool for pool in self._slots.pools.values() if pool.capabilities]
            self._unseen = {pool.name for pool in able if not pool.room and not self._claims_anyway(pool)}
            return [pool for pool in able if pool.room]
        if not (self._more_due or self._backlog_left or self._unseen):
            return []
        # Only these: to ask each time whether webhooks are due as well took a third of a drain of functions.
        pools = [pool for pool in self._slots.pools.values() if self._wants(pool)]
        self._unseen.difference_update(pool.name for pool in pools)
        return pools

    def claimed(self, name: str, limit: int, claim: Claim) -> NextLook:
        """What a claim of `limit` runs for this pool has brought; returns when to look again."""
        pool = self._slots.pools[name]
        self._more_due.discard(name)
        self._backlog_left.discard(name)
        pool.supplied = False
        if len(claim.runs) >= limit:
            self._more_due.add(name)
            spare = (claim.runs[-1].due_at - claim.now) / 2000  # half of the time until the last of them
            if spare >= HELD_LASTS:
                pool.supplied = True
                pool.want_more(CLAIM_PORTION)
                return NextLook(within=spare)
            pool.want_more()
            return NextLook(within=CLAIM_AGAIN_AHEAD if pool.holds_ahead else CLAIM_AGAIN)
        if claim.next_ready is None:
            return _NOTHING_IN_SIGHT
        if claim.next_ready > claim.now:
            return NextLook(at_ms=claim.next_ready)
        if pool.backlog.waits:
            self._backlog_left.add(name)
        elif claim.runs:
            self._more_due.add(name)
        return NextLook(within=CLAIM_AGAIN)

    def _wants(self, pool: SlotPool) -> bool:
        name = pool.name
        return (
            (name in self._more_due and pool.has_enough)
            or (name in self._backlog_left and pool.room > 0 and not pool.backlog.waits)
            or (name in self._unseen and pool.room > 0 and bool(pool.capabilities))
        )

    def _claims_anyway(self, pool: SlotPool) -> bool:
        """It is behind: what is due next comes with the next claim, and that comes with the next free slots."""
        return pool.name in self._more_due and not pool.supplied
