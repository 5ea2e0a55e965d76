"""Maintenance that one node does for all: old rows, partitions, numbers over time, the proof. Whoever holds the duty is
shown as the leader; no firing depends on it. And the one thing each node does for itself: its own old log files."""

from __future__ import annotations

import random
from typing import Protocol

from onthedot.clock import Clock
from onthedot.engine.mailbox import Signal
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.ports import DutyStore
from onthedot.engine.waiting import at_most
from onthedot.errors import StoreUnavailable
from onthedot.model.duration import SECOND

__all__ = ["LOGS_EVERY", "MAINTENANCE_EVERY", "Duties"]

DUTY = "upkeep"  # its name in the table: nodes of older releases hold it by this one
LOOK_EVERY = 5.0
MAINTENANCE_EVERY = 60.0
LOGS_EVERY = 3600.0
"""Or as often as the retention lasts, if that is shorter: at 150 runs a second, files of an hour are half a million."""
FLOORS_EVERY = 3600.0


class OldFiles(Protocol):
    async def remove_older(self, before: float) -> None:
        """Those last written before this instant, in seconds since the epoch."""


class Duties:
    def __init__(
        self,
        node_id: str,
        *,
        store: DutyStore,
        clock: Clock,
        time: DatabaseClock,
        health: StoreHealth,
        rng: random.Random,
        retention_ms: int,
        logs: OldFiles | None,
        free: Signal,
    ) -> None:
        """`free`: told when the duty may have become free, so that nobody has to wait for the next look."""
        self._node_id = node_id
        self._store = store
        self._clock = clock
        self._time = time
        self._health = health
        self._rng = rng
        self._retention_ms = retention_ms
        self._logs = logs
        self._free = free
        self._maintenance_at = clock.monotonic()
        self._floors_at = clock.monotonic()
        self._floors_after: int | None = None  # up to which job a look at them has come; None: none is under way
        self._set_back = 0  # of the times the clock was set back, those after which floors were looked at
        self._logs_every = min(LOGS_EVERY, max(MAINTENANCE_EVERY, retention_ms / SECOND))
        self._logs_at = clock.monotonic() + self._logs_every * rng.random()
        self._next_resume: int | None = None  # ms until a pause is over
        self.held = False  # whether this node had the duty at its last look
        self.groups_wait = False  # as the last beat said: runs wait for their concurrency group

    async def step(self) -> None:
        pause = LOOK_EVERY * self._rng.uniform(0.8, 1.0)
        try:
            await self.look_after()
            if self._next_resume is not None:
                pause = min(pause, self._next_resume / SECOND)
        except StoreUnavailable as error:
            self.held = False
            self._health.failed(error)
        await at_most(self._clock, pause, self._free.wait())

    async def look_after(self) -> None:
        now, self._next_resume = self._clock.monotonic(), None
        self.held = await self._store.take_duty(DUTY, self._node_id)
        if self.held:
            await self._look_at_floors(now)
            self._next_resume = await self._store.resume_due()
            await self._store.close_one_offs_in_passing()
            if self.groups_wait and await self._store.watch_groups():
                await self._store.notify("due")
            await self._store.roll_up()
            await self._store.prove(self._retention_ms)
            if now >= self._maintenance_at:
                self._maintenance_at = now + MAINTENANCE_EVERY
                await self._store.ensure_partitions()
                await self._store.watch_ledger()
                await self._store.forget_noticed()
                await self._store.prune(await self._store.now() - self._retention_ms)
        await self._remove_old_logs(now)

    async def _look_at_floors(self, now: float) -> None:
        """Jobs that stand in a future that has not come: right after the database's clock was set back all of them,
        otherwise some at a time. At a start, because it may have happened while nobody was there to see it."""
        noticed = self._time.set_back
        if noticed != self._set_back:
            after = 0
            while after or self._set_back != noticed:
                _, after = await self._store.put_floors_right(after)
                self._set_back = noticed
            self._floors_after = None
            return
        if self._floors_after is None and now >= self._floors_at:
            self._floors_at = now + FLOORS_EVERY
            self._floors_after = 0
        if self._floors_after is not None:
            _, after = await self._store.put_floors_right(self._floors_after)
            self._floors_after = after or None

    async def _remove_old_logs(self, now: float) -> None:
        if self._logs is not None and now >= self._logs_at:
            self._logs_at = now + self._logs_every
            await self._logs.remove_older((self._clock.now_ms() - self._retention_ms) / 1000)
