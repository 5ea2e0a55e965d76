"""Works off bulk operations, portion by portion: at once by hint, and within seconds what another node left."""

from __future__ import annotations

import random

from onthedot.clock import Clock
from onthedot.engine.mailbox import Signal
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.ports import OperationStore
from onthedot.engine.tuning import OPERATION_REST, OPERATIONS_EVERY
from onthedot.engine.waiting import at_most
from onthedot.errors import StoreUnavailable
from onthedot.model.duration import SECOND
from onthedot.store import WorkedOff
from onthedot.telemetry import emit

__all__ = ["OperationRunner"]


class OperationRunner:
    def __init__(
        self,
        node_id: str,
        *,
        store: OperationStore,
        clock: Clock,
        rng: random.Random,
        health: StoreHealth,
        backoff: Backoff,
    ) -> None:
        self.hints = Signal()
        self._node_id = node_id
        self._store = store
        self._clock = clock
        self._rng = rng
        self._health = health
        self._backoff = backoff

    async def step(self) -> None:
        pause = OPERATIONS_EVERY * self._rng.uniform(0.8, 1.0)
        try:
            wait = await self._store.wait_for_operation()
            if wait == 0 and await self.portion():
                self._backoff.reset()
                return
            if wait:
                pause = min(pause, wait / SECOND)
        except StoreUnavailable as error:
            self._health.failed(error)
            pause = self._backoff.delay()
        await at_most(self._clock, pause, self.hints.wait())

    async def portion(self) -> bool:
        """One portion. False: somebody else has it in hand."""
        began = self._clock.monotonic()
        worked = await self._store.work_off_operation(self._node_id)
        if worked is None:
            return False
        await self._tell(worked)
        await self._clock.sleep(OPERATION_REST * (self._clock.monotonic() - began))
        return True

    async def _tell(self, worked: WorkedOff) -> None:
        operation = worked.operation
        emit(
            "operation.progress",
            tenant=worked.tenant,
            operation=operation.id,
            verb=operation.verb,
            state=operation.state,
            total=operation.total,
            total_exact=operation.total_exact,
            done=operation.done,
            failed=operation.failed,
            skipped=operation.skipped,
        )
        if worked.due:
            await self._store.notify("due")
        if worked.orders:
            await self._store.notify("orders")
