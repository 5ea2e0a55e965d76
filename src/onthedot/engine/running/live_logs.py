"""Makes the output of running attempts readable from everywhere: what was written since the last look
goes into the store, a portion a second. Attempts that end sooner cost nothing: their log is written with the result."""

from __future__ import annotations

from onthedot.clock import Clock
from onthedot.engine.mailbox import Signal
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.ports import LiveLogStore
from onthedot.engine.running.run_log import RunLog
from onthedot.engine.tuning import LIVE_LOG_EVERY, LIVE_LOG_PORTION
from onthedot.errors import StoreUnavailable
from onthedot.store import LiveLog

__all__ = ["LiveLogWriter"]


class LiveLogWriter:
    def __init__(self, *, store: LiveLogStore, clock: Clock, health: StoreHealth) -> None:
        self._store = store
        self._clock = clock
        self._health = health
        self._unwritten: dict[tuple[str, int], RunLog] = {}
        self._written: set[tuple[str, int]] = set()
        self._ended: list[tuple[str, int]] = []
        self._some = Signal()

    def wrote(self, log: RunLog) -> None:
        """Never waits: a target's output comes from a callback."""
        self._unwritten[log.attempt] = log
        self._some.set()

    def ended(self, log: RunLog) -> None:
        self._unwritten.pop(log.attempt, None)
        if log.attempt in self._written:
            self._written.discard(log.attempt)
            self._ended.append(log.attempt)
            self._some.set()

    async def step(self) -> None:
        await self._some.wait()
        await self._clock.sleep(LIVE_LOG_EVERY)
        try:
            await self.flush()
        except StoreUnavailable as error:  # a convenience: nobody waits for it, and the next portion has it all
            self._health.failed(error)
        if self._unwritten or self._ended:
            self._some.set()

    async def flush(self) -> None:
        portion = self._portion()
        if portion:
            self._written.update((log.run_id, log.token) for log in portion)
            await self._store.put_live_logs(portion)
        if self._ended:
            ended = tuple(self._ended)
            await self._store.drop_live_logs(ended)
            del self._ended[: len(ended)]

    def _portion(self) -> list[LiveLog]:
        portion: list[LiveLog] = []
        size = 0
        while self._unwritten and size < LIVE_LOG_PORTION:
            attempt, log = next(iter(self._unwritten.items()))
            del self._unwritten[attempt]
            portion.append(LiveLog(run_id=attempt[0], tenant=log.tenant, token=attempt[1], text=log.tail()))
            size += len(portion[-1].text)
        return portion
