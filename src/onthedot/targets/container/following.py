"""One container from its start to its end: followed, however often the engine goes away, and stopped if wanted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from onthedot.targets.container.creation import GRACE
from onthedot.targets.container.log_stream import ContainerLog
from onthedot.targets.container_engine.engine import ContainerEngine, EngineRefused, FoundContainer
from onthedot.targets.container_engine.http_client import EngineAway
from onthedot.targets.container_engine.link import EngineElsewhere, EngineLink
from onthedot.targets.coroutine import take_cancel

__all__ = ["STOP_WITHIN", "Following"]

STOP_WITHIN = GRACE + 10.0
"""Seconds in which an engine that answers has stopped a container."""
LOOK_EVERY = 30.0
"""Waiting for its end is asked anew after so many seconds: a connection may be dead without a word."""
LOG_WITHIN = 120.0
"""Seconds for the rest of the log after the end."""
LAST_WORDS_WITHIN = 2.0
"""… after it was stopped."""
PAUSE = 0.3


class Following:
    """`cut`: the engine was away meanwhile."""

    def __init__(
        self, engine: ContainerEngine, link: EngineLink, place: str, name: str, log: Callable[[str], None]
    ) -> None:
        self.cut = False
        self._engine, self._link, self._place, self._name = engine, link, place, name
        self._log = ContainerLog(engine, name, log)
        self._reading: asyncio.Task[None] | None = None

    async def until_over(self) -> FoundContainer | None:
        """How it ended, or that it was never started; None: it is gone. Whether it goes on is asked apart from its log,
        which may end at any time."""
        waited = False
        while True:
            try:
                found = await self._link.found_at(self._place, self._name)
                if found is None or found.is_over or found.is_new:
                    return found
                if not waited:
                    await self._engine.wait(self._name, LOOK_EVERY)
                    waited = True
                    continue
            except (EngineElsewhere, EngineRefused):
                pass  # as engines do while they start or stop
            except EngineAway as away:
                self._away(away)
            waited = False
            await asyncio.sleep(PAUSE)

    def _away(self, why: EngineAway) -> None:
        self.cut = True
        self._link.lost(why)

    @asynccontextmanager
    async def logged(self) -> AsyncIterator[None]:
        """Its log is followed inside, and read to its end on the way out; not if it is left by an error."""
        reading = self._reading = asyncio.create_task(self._log.run(), name=f"onthedot-log-{self._name}")
        try:
            yield
            await self._read_rest(LOG_WITHIN)
        finally:
            self._reading = None
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read_rest(self, within: float) -> None:
        self._log.over.set()
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=within)

    async def stop(self) -> None:
        """SIGTERM, a while to tidy up, SIGKILL. Asked again, it is killed at once. An engine that is away is asked
        until the time is up."""
        take_cancel()
        try:
            async with asyncio.timeout(STOP_WITHIN):
                await self._asked(lambda: self._engine.stop(self._name, GRACE))
            await self._read_rest(LAST_WORDS_WITHIN)
        except TimeoutError:
            pass  # then it is said that it may still run
        except asyncio.CancelledError:
            take_cancel()
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_WITHIN):
                    await self._asked(lambda: self._engine.kill(self._name))
            raise

    async def _asked(self, ask: Callable[[], Awaitable[None]]) -> None:
        """Until the engine that has it says that it is done: of one that another does not have, it says so, too."""
        while True:
            try:
                await ask()
                if await self._link.is_at(self._place):
                    return
            except EngineAway as away:
                self._link.lost(away)
            except EngineRefused:
                pass
            await asyncio.sleep(PAUSE)
