"""The beat: each second "I am here", answered by the database's time, by whether we still count as alive, by the beats
of the others and by whether there are orders or orphans. A loop of its own: nothing a node does can make it late."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Protocol

from onthedot.clock import Clock
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.membership.lease import Lease
from onthedot.engine.membership.peer_beats import PeerBeats
from onthedot.errors import StoreUnavailable
from onthedot.model.node import NodeLoad
from onthedot.store import Beat

__all__ = ["BEAT", "BeatStore", "Heartbeat"]

BEAT = 1.0
_RETRY = (0.1, 0.5)  # of that, after a beat without an answer: a lease has room for several
_PATIENCE = 1.5  # of that: a call that hangs longer is given up, or one silent connection would cost the whole lease


class BeatStore(Protocol):
    async def beat(self, node: str, load: NodeLoad) -> Beat: ...


class Heartbeat:
    def __init__(
        self,
        node_id: str,
        *,
        store: BeatStore,
        clock: Clock,
        time: DatabaseClock,
        lease: Lease,
        watch: PeerBeats,
        health: StoreHealth,
        rng: random.Random,
        every: float = BEAT,
        load: Callable[[], NodeLoad],
        lost: Callable[[], None],
        said: Callable[[Beat], None] = lambda answer: None,
    ) -> None:
        self._node_id = node_id
        self._store = store
        self._clock = clock
        self._time = time
        self._lease = lease
        self._watch = watch
        self._health = health
        self._rng = rng
        self._every = every
        self._load = load
        self._lost = lost
        self._said = said
        self._hung: set[asyncio.Future[Beat]] = set()

    async def step(self) -> None:
        sent = self._clock.monotonic()
        rest = self._every if await self.beat() else self._every * self._rng.uniform(*_RETRY)
        await self._clock.sleep(max(0.0, sent + rest - self._clock.monotonic()))

    async def beat(self) -> bool:
        """Whether it came through."""
        sent = self._clock.monotonic()
        try:
            answer = await self._ask()
        except (StoreUnavailable, TimeoutError) as error:
            self._health.failed(error)
            return False
        arrived = self._clock.monotonic()
        self._health.worked()
        self._time.observe(answer.now, sent, arrived)
        if not answer.alive:
            self._lost()
            return True
        self._lease.renew(sent)
        self._watch.observe(arrived, answer.peers)
        self._said(answer)
        if not answer.orders:
            self._lease.heard(sent)
        return True

    async def _ask(self) -> Beat:
        """With a deadline of its own. What hangs is cancelled but not waited for: a network gone silent does not answer
        a rollback either, and the next beat takes another connection."""
        call = asyncio.ensure_future(self._store.beat(self._node_id, self._load()))
        try:
            async with self._clock.timeout(_PATIENCE * self._every):
                return await asyncio.shield(call)
        finally:
            if not call.done():
                call.cancel()
                self._hung.add(call)
                call.add_done_callback(self._forget)

    def _forget(self, call: asyncio.Future[Beat]) -> None:
        self._hung.discard(call)
        if not call.cancelled():
            call.exception()
