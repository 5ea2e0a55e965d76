"""Carries out what ended runs cause elsewhere: right after this node has recorded them, and within a second what
another node has left behind (each beat says whether there is something)."""

from __future__ import annotations

from onthedot.clock import Clock
from onthedot.engine.mailbox import Signal
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.ports import NoteStore
from onthedot.errors import StoreUnavailable

__all__ = ["NoteRunner"]


class NoteRunner:
    def __init__(self, *, store: NoteStore, clock: Clock, health: StoreHealth, backoff: Backoff) -> None:
        self.left = Signal()
        self._store = store
        self._clock = clock
        self._health = health
        self._backoff = backoff

    async def step(self) -> None:
        await self.left.wait()
        try:
            await self.carry_out()
        except StoreUnavailable as error:  # the beat says so again
            self._health.failed(error)
            await self._clock.sleep(self._backoff.delay())
        else:
            self._backoff.reset()

    async def carry_out(self) -> None:
        """All there are, those of one job at a time. What can't be carried out stays, and is passed over."""
        after, parked = 0, False
        while (carried := await self._store.carry_out_notes(after)) is not None:
            after, parked = max(after, carried.passed), parked or bool(carried.parked)
            if carried.incidents:
                await self._store.notify("alerts")
            if carried.started:  # at once: what follows a run is due now
                await self._store.notify("due")
        if parked:
            await self._store.notify("orders")
