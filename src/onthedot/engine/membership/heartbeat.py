"""The beat: each second "I am here", answered by the database's time, by whether we still count as alive, by the beats
of the others and by whether there are orders, orphans, open runs or notes. A loop of its own: nothing a node does can
make it late."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from onthedot.clock import Clock
from onthedot.engine.look_times import LookTimes
from onthedot.engine.mailbox import Signal
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.membership.lease import Lease
from onthedot.engine.membership.order_poller import OrderPoller
from onthedot.engine.membership.peer_beats import PeerBeats
from onthedot.engine.ports import BeatStore
from onthedot.engine.tuning import BEAT_RETRY, BEAT_TIMEOUT
from onthedot.errors import StoreUnavailable
from onthedot.model.node import NodeLoad
from onthedot.store import Beat

__all__ = ["Heartbeat"]


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
        every: float,
        load: Callable[[], NodeLoad],
        lost: asyncio.Event,
        order_poller: OrderPoller,
        orphans: Signal,
        notes: Signal,
        look_times: LookTimes,
        heard: Callable[[Beat], None] = lambda answer: None,
    ) -> None:
        """`lost` is set when others have declared this node lost, `orphans` when there are runs of lost nodes, `notes`
        when what ended runs cause elsewhere is still to be done. `heard` is told each answer."""
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
        self._order_poller = order_poller
        self._orphans = orphans
        self._notes = notes
        self._look_times = look_times
        self._heard = heard
        self._hung: set[asyncio.Future[Beat]] = set()

    async def step(self) -> None:
        sent = self._clock.monotonic()
        rest = self._every if await self.beat() else self._every * self._rng.uniform(*BEAT_RETRY)
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
            self._lost.set()
            return True
        self._lease.renew(sent)
        self._watch.observe(arrived, answer.peers)
        self._order_poller.beat_said(answer.orders)
        if answer.orphans:
            self._orphans.set()
        if answer.noted:
            self._notes.set()
        if answer.adoptable:
            self._look_times.open_seen()
        self._heard(answer)
        if not answer.orders:
            self._lease.heard(sent)
        return True

    async def _ask(self) -> Beat:
        """With a deadline of its own. What hangs is cancelled but not waited for: a network gone silent does not answer
        a rollback either, and the next beat takes another connection."""
        call = asyncio.ensure_future(self._store.beat(self._node_id, self._load()))
        try:
            async with self._clock.timeout(BEAT_TIMEOUT * self._every):
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
