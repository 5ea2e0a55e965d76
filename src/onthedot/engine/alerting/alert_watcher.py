"""The duty of alerts: looks every two seconds for what no end of a run tells, on the node that holds the duty."""

from __future__ import annotations

import random
from collections.abc import Callable

from onthedot.clock import Clock
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.ports import AlertStore
from onthedot.errors import StoreUnavailable
from onthedot.telemetry import emit

__all__ = ["AlertWatcher"]

LOOK_EVERY = 2.0
OBJECTIVES_EVERY = 60.0


class AlertWatcher:
    def __init__(
        self,
        *,
        store: AlertStore,
        clock: Clock,
        rng: random.Random,
        health: StoreHealth,
        holds_duty: Callable[[], bool],
    ) -> None:
        self._store = store
        self._clock = clock
        self._rng = rng
        self._health = health
        self._holds_duty = holds_duty
        self._objectives_at = clock.monotonic() + OBJECTIVES_EVERY * rng.random()

    async def step(self) -> None:
        try:
            if self._holds_duty():
                await self.look()
        except StoreUnavailable as error:
            self._health.failed(error)
        except Exception as error:  # what is wrong with alerts must not stop what fires
            emit("alert.watch_failed", error=f"{type(error).__name__}: {error}")
        await self._clock.sleep(LOOK_EVERY * self._rng.uniform(0.8, 1.0))

    async def look(self) -> None:
        if await self._store.alerts_wanted() and await self._store.watch_alerts():
            await self._store.notify("alerts")
        if self._clock.monotonic() >= self._objectives_at:
            self._objectives_at = self._clock.monotonic() + OBJECTIVES_EVERY
            await self._store.count_objectives()
