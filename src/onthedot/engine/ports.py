"""What the engine asks of the store, by who asks it: the real one fulfils this, and so does one that delays and loses
answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from onthedot.engine.messages import Fence
from onthedot.model.node import NodeInfo, NodeLoad
from onthedot.store import (
    Adopted,
    Beat,
    CarriedOut,
    Claim,
    DueAlert,
    Finished,
    FinishReport,
    LiveLog,
    PolledOrders,
    StartedWork,
    TurnedAway,
    WaitingSeen,
    Want,
    WorkedOff,
)

__all__ = [
    "AlertStore",
    "BeatStore",
    "BeginStore",
    "ClaimStore",
    "DestinationStore",
    "DutyStore",
    "EngineStore",
    "LeftoverStore",
    "LiveLogStore",
    "NoteStore",
    "Offload",
    "OperationStore",
    "OrderStore",
    "RecordStore",
    "WatchStore",
]

Offload = Callable[[Callable[[], None]], Awaitable[None]]
"""Runs blocking work off the loop that beats."""


class ClaimStore(Protocol):
    async def claim_each(
        self, node: str, wants: Sequence[Want], *, level: int, lookahead_ms: int, within_ms: int
    ) -> list[Claim]: ...

    async def adopt(self, node: str, capabilities: Sequence[str], *, level: int, limit: int) -> list[Adopted]: ...

    async def held(self, node: str) -> list[Fence]: ...


class DestinationStore(Protocol):
    async def waited_for(self, ranges: Sequence[tuple[str, str]], most: int) -> WaitingSeen: ...

    async def release_expired_waiting(self) -> int: ...


class LabelStore(Protocol):
    async def required(self, after: str, most: int) -> list[str]: ...


class LeftoverStore(Protocol):
    async def living(self, tries: Sequence[tuple[str, int]]) -> set[tuple[str, int]]: ...


class BeginStore(Protocol):
    async def begin(self, node: str, fences: Sequence[Fence]) -> set[str]: ...

    async def begin_work(self, node: str, started: Sequence[StartedWork]) -> set[str]: ...


class LiveLogStore(Protocol):
    async def put_live_logs(self, logs: Sequence[LiveLog]) -> None: ...

    async def drop_live_logs(self, ended: Sequence[tuple[str, int]]) -> None: ...


class RecordStore(Protocol):
    async def finish(self, node: str, results: Sequence[Finished]) -> FinishReport: ...

    async def give_back(self, node: str, fences: Sequence[Fence]) -> None: ...

    async def wait_for_destinations(self, node: str, runs: Sequence[TurnedAway]) -> None: ...

    async def detach(self, node: str, runs: Sequence[tuple[str, int, int | None]]) -> set[str]: ...

    async def close_one_offs(self, most: int) -> int: ...

    async def notify(self, topic: str) -> None: ...


class NoteStore(Protocol):
    async def carry_out_notes(self, after: int) -> CarriedOut | None: ...

    async def notify(self, topic: str) -> None: ...


class AlertStore(Protocol):
    async def alerts_due(self, channels: Sequence[str]) -> list[str]: ...

    async def take_alerts(self, node: str, channel: str) -> tuple[list[DueAlert], int]: ...

    async def alerts_sent(self, ids: Sequence[int]) -> None: ...

    async def alerts_not_sent(self, ids: Sequence[int], error: str | None, wait_ms: int) -> None: ...

    async def alerts_wanted(self) -> bool: ...

    async def watch_alerts(self) -> bool: ...

    async def count_objectives(self) -> int: ...

    async def notify(self, topic: str) -> None: ...


class BeatStore(Protocol):
    async def beat(self, node: str, load: NodeLoad) -> Beat: ...


class OperationStore(Protocol):
    async def wait_for_operation(self) -> int | None: ...

    async def work_off_operation(self, node: str) -> WorkedOff | None: ...

    async def notify(self, topic: str) -> None: ...


class OrderStore(Protocol):
    async def poll_orders(self, node: str) -> PolledOrders: ...


class WatchStore(Protocol):
    async def declare_lost(self, node: str, beat_seen: int) -> bool: ...

    async def reclaim(self) -> int: ...

    async def notify(self, topic: str) -> None: ...


class DutyStore(Protocol):
    async def now(self) -> int: ...

    async def close_one_offs_in_passing(self) -> int: ...

    async def resume_due(self) -> int | None: ...

    async def take_duty(self, name: str, node: str) -> bool: ...

    async def prune(self, before: int) -> int: ...

    async def ensure_partitions(self) -> list[str]: ...

    async def forget_noticed(self) -> int: ...

    async def watch_ledger(self) -> list[int]: ...

    async def put_floors_right(self, after: int = 0) -> tuple[int, int]: ...

    async def watch_groups(self) -> int: ...

    async def roll_up(self) -> int: ...

    async def prove(self, kept_ms: int) -> bool: ...

    async def notify(self, topic: str) -> None: ...


class EngineStore(
    ClaimStore,
    BeginStore,
    DestinationStore,
    LabelStore,
    LeftoverStore,
    LiveLogStore,
    RecordStore,
    NoteStore,
    AlertStore,
    BeatStore,
    OperationStore,
    OrderStore,
    WatchStore,
    DutyStore,
    Protocol,
):
    async def register(self, info: NodeInfo) -> int: ...

    async def callback_secret(self, proposal: str) -> str: ...

    async def leave(self, node: str) -> None: ...

    def listen(self, callback: Callable[[str], None]) -> Callable[[], None]: ...
