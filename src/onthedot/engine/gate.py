"""The gate that at-most-once runs pass: "sent once" is committed before the send, many in one transaction.

Refused means that somebody wants it back, or has it: it is given back unsent. No answer means nobody knows: it is asked
again, for as long as it takes, because asking twice is harmless and sending without knowing is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from onthedot.clock import Clock
from onthedot.engine.backoff import Backoff
from onthedot.engine.health import Health
from onthedot.engine.mailbox import Mailbox
from onthedot.engine.messages import Fence
from onthedot.engine.monitor import Monitor
from onthedot.errors import StoreUnavailable

__all__ = ["BeginStore", "Gate"]


class BeginStore(Protocol):
    async def begin(self, node: str, fences: Sequence[Fence]) -> set[str]: ...


class Gate:
    def __init__(
        self, node_id: str, *, store: BeginStore, clock: Clock, health: Health, backoff: Backoff, size: int
    ) -> None:
        self.mailbox: Mailbox[Monitor] = Mailbox(size)
        self._node_id = node_id
        self._store = store
        self._clock = clock
        self._health = health
        self._backoff = backoff

    async def step(self) -> None:
        waiting = [await self.mailbox.take(), *self.mailbox.take_all()]
        while waiting := _still_wanted(waiting):
            try:
                allowed = await self._store.begin(self._node_id, [(m.run.id, m.run.token) for m in waiting])
            except StoreUnavailable as error:
                self._health.failed(error)
                await self._clock.sleep(self._backoff.delay())
                continue
            self._health.worked()
            self._backoff.reset()
            for monitor in waiting:
                if monitor.run.id not in allowed:
                    monitor.stop("interrupted")  # unsent: it goes back, and the store knows what to make of it
                monitor.start()
            return


def _still_wanted(waiting: list[Monitor]) -> list[Monitor]:
    """Those that were cancelled or interrupted at the gate go on to say so; they send nothing."""
    for monitor in waiting:
        if monitor.cause is not None:
            monitor.start()
    return [monitor for monitor in waiting if monitor.cause is None]
