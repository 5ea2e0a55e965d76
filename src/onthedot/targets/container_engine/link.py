"""Whether the engine answers, and who it is. Away, it is looked for again and again, and no run is begun meanwhile:
what is due waits for a node whose engine answers."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from onthedot.targets.container_engine.engine import ContainerEngine, EngineAbout, EngineRefused, FoundContainer
from onthedot.targets.container_engine.http_client import EngineAway
from onthedot.telemetry import emit

__all__ = ["EngineElsewhere", "EngineLink"]

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
OPEN_WITHIN = 2.0


class EngineElsewhere(Exception):
    """Who answers is not the engine that was asked for: what it does not have may well be there."""


class EngineLink:
    """Kept by a task of its own, from `open` to `close`. `place`: the name that the operator gave the engine."""

    def __init__(self, engine: ContainerEngine, place: str | None) -> None:
        self._engine, self._named = engine, place
        self.about: EngineAbout | None = None  # None: it does not answer
        self.place = place or "unknown"
        self.why = "the container engine was not asked yet"  # it does not answer
        self._is_told = False
        self._lost = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """An engine that hangs must not hold up the node."""
        with suppress(TimeoutError):
            async with asyncio.timeout(OPEN_WITHIN):
                await self.look()
        self._task = asyncio.create_task(self._keep(), name="onthedot-container-engine")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def lost(self, why: EngineAway) -> None:
        """A call found that it does not answer."""
        if self.about is not None:
            self.about = None
            self._tell(str(why))
            self._lost.set()

    async def is_at(self, place: str) -> bool:
        """Whether who answers now is this engine: only then is what it does not have gone."""
        return await self.look() and self.place == place

    async def found_at(self, place: str, name: str) -> FoundContainer | None:
        """None: it is gone. That counts only from an engine that was this one before and after it was asked: an address
        may lead to another for a moment, and its answer does not say whose it is."""
        found = await self._engine.inspect(name)
        if found is None and await self.is_at(place):
            found = await self._engine.inspect(name)
            if found is None and await self.is_at(place):
                return None
        if found is None:
            raise EngineElsewhere
        return found

    async def _keep(self) -> None:
        pause = FIRST_PAUSE
        while True:
            if self.about is None and not await self.look():
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                continue
            pause = FIRST_PAUSE
            self._lost.clear()
            await self._lost.wait()
            await asyncio.sleep(pause)  # one that answers this and nothing else must not be asked without a pause

    async def look(self) -> bool:
        """Whether it answers now."""
        try:
            about = await self._engine.about()
        except (EngineAway, EngineRefused) as error:
            self.about = None
            self._tell(str(error))
            self._lost.set()
            return False
        if about.lacks is not None:
            self.about = None
            self._tell(about.lacks)
            return False
        if self.about is None:
            emit("containers.engine", address=self._engine.address, engine=about.title)
        self.place = self._named or about.place
        self.about, self._is_told = about, False
        return True

    def _tell(self, why: str) -> None:
        self.why = why
        if not self._is_told:  # once until it is back, not with every look
            self._is_told = True
            emit("containers.unavailable", address=self._engine.address, error=why)
