"""Whether the engine answers, and who it is. Away, it is looked for again and again, and no run is begun meanwhile:
what is due waits for a node whose engine answers."""

from __future__ import annotations

from onthedot.targets.container_engine.engine import ContainerEngine, EngineAbout, EngineRefused, FoundContainer
from onthedot.targets.container_engine.http_client import EngineAway
from onthedot.targets.reconnection import Reconnection
from onthedot.telemetry import emit

__all__ = ["EngineElsewhere", "EngineLink"]


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
        self._reconnection = Reconnection(self.look, lambda: self.about is not None, "onthedot-container-engine")

    async def open(self) -> None:
        await self._reconnection.open()

    async def close(self) -> None:
        await self._reconnection.close()

    def lost(self, why: EngineAway) -> None:
        """A call found that it does not answer."""
        if self.about is not None:
            self.about = None
            self._tell(str(why))
            self._reconnection.lost()

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

    async def look(self) -> bool:
        """Whether it answers now."""
        try:
            about = await self._engine.about()
        except (EngineAway, EngineRefused) as error:
            self.about = None
            self._tell(str(error))
            self._reconnection.lost()
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
