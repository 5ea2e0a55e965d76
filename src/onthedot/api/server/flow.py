"""What our connections need of uvicorn beside its protocol: reading that waits for us, and a load that all share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.server import ServerState

from onthedot.api.server.limits import Load

__all__ = ["CountedServerState", "HoldingFlow"]


class HoldingFlow(FlowControl):
    """Reading goes on when uvicorn wants it to and nothing waits here; if something does, it is `wanted`."""

    def __init__(self, transport: asyncio.Transport, wanted: Callable[[], None]) -> None:
        super().__init__(transport)
        self.held_back = False
        self._wanted = wanted

    def resume_reading(self) -> None:
        if self.held_back:
            self._wanted()
        else:
            super().resume_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.held_back:
            self._wanted()


class CountedServerState(ServerState):
    """uvicorn gives its state to each connection: so each finds what is counted for all."""

    def __init__(self) -> None:
        super().__init__()
        self.load = Load()
