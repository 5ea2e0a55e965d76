"""What the engine asks of the store: the real one fulfils this, and so does one that delays and loses answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from onthedot.engine.claiming.claimer import ClaimStore
from onthedot.engine.membership.duties import DutyStore
from onthedot.engine.membership.failure_detector import WatchStore
from onthedot.engine.membership.heartbeat import BeatStore
from onthedot.engine.membership.order_poller import NewsStore
from onthedot.engine.recording.recorder import RecordStore
from onthedot.engine.running.begin_gate import BeginStore
from onthedot.engine.running.live_logs import LiveLogStore
from onthedot.model.node import NodeInfo

__all__ = ["EngineStore"]


class EngineStore(
    ClaimStore, BeginStore, RecordStore, NewsStore, WatchStore, BeatStore, DutyStore, LiveLogStore, Protocol
):
    async def register(self, info: NodeInfo) -> int: ...

    async def leave(self, node: str) -> None: ...

    def listen(self, callback: Callable[[str], None]) -> Callable[[], None]: ...
