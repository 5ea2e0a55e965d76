"""What the Scheduler asks of the store: claims, and a look at its own rows. One errand at a time, so that a row which a
claim has just taken is never mistaken for one whose answer was lost."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from onthedot.clock import Clock
from onthedot.engine.claiming.capacity import SlotPool
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.messages import Claimed, Fence, Missed, OwnRows
from onthedot.engine.recording.owned_runs import OwnedRuns
from onthedot.errors import StoreUnavailable
from onthedot.model.level import LEVEL
from onthedot.plan import on_time_share
from onthedot.store import Claim, Want

__all__ = ["ClaimStore", "Claimer"]


class ClaimStore(Protocol):
    async def claim_each(
        self, node: str, wants: Sequence[Want], *, level: int, lookahead_ms: int, within_ms: int
    ) -> list[Claim]: ...

    async def held(self, node: str) -> list[Fence]: ...


class Claimer:
    def __init__(
        self,
        node_id: str,
        *,
        store: ClaimStore,
        clock: Clock,
        time: DatabaseClock,
        owned: OwnedRuns,
        lookahead_ms: int,
        rng: random.Random,
    ) -> None:
        self._node_id = node_id
        self._store = store
        self._clock = clock
        self._time = time
        self._owned = owned
        self._lookahead_ms = lookahead_ms
        self._rng = rng

    async def claim(self, pools: Sequence[SlotPool]) -> Claimed | Missed:
        """For each kind that has room: functions must not wait for webhooks, nor take their room."""
        pools = [pool for pool in pools if pool.room]  # it was so a moment ago
        if not pools:
            return Claimed([])
        wants = [_want(pool) for pool in pools]
        sent = self._clock.monotonic()
        try:
            claims = await self._store.claim_each(
                self._node_id, wants, level=LEVEL, lookahead_ms=self._lookahead_ms, within_ms=self._soon()
            )
        except StoreUnavailable as error:
            return Missed([], error)
        self._time.observe(claims[0].now, sent, self._clock.monotonic())
        for claim in claims:
            for run in claim.runs:  # ours from here on, before anything else can look
                self._owned.add(run.id, run.token)
        brought = [(pool.name, want.limit, claim) for pool, want, claim in zip(pools, wants, claims, strict=False)]
        if len(claims) < len(wants):
            return Missed(brought, StoreUnavailable("it went away between two kinds of runs"))
        return Claimed(brought)

    def _soon(self) -> int:
        """How long before its instant a run that may be held ahead is claimed at the latest, with all that is ready by
        then: half of the lookahead or a little more. At random, so that nodes do not look together: the first one takes
        them all. (When each look took what was ready, and each run of a lane made all nodes look, five nodes
        claimed 334 runs a second in 215 claims, 105 of them for nothing.)"""
        return round(self._lookahead_ms * self._rng.uniform(0.5, 0.625))

    async def rows(self) -> OwnRows | Missed:
        before = self._owned.snapshot()
        try:
            return OwnRows(await self._store.held(self._node_id), before)
        except StoreUnavailable as error:
            return Missed([], error)


def _want(pool: SlotPool) -> Want:
    limit = pool.room
    return Want(offers=list(pool.offers), limit=limit, late=pool.backlog.room(on_time_share(limit)))
