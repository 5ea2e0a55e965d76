"""Nodes: one process incarnation each. The id is minted at every start; the name may repeat."""

from __future__ import annotations

import msgspec

from onthedot.model.destination import DestinationLoad

__all__ = ["NodeInfo", "NodeLoad", "NodeName", "NodeView", "SlotUse"]


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a node says of itself when it registers."""

    id: str
    name: str
    host: str
    pid: int
    version: str
    level: int
    roles: list[str]
    offers: list[str]  # what it can run: "webhook", "function:module", "command:name"
    capacity: int
    binding: str | None = None  # where its API listens, "127.0.0.1:8000"; None: it serves none
    labels: list[str] = msgspec.field(default_factory=list)  # what jobs may require of it beside that
    exposed: bool = False  # others than this machine's users can reach that API, or it asks for keys


class NodeLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What a node says of itself with every beat. `offers` and `capacity` None: as they were."""

    held: int = 0
    running: int = 0
    lateness_ms: int | None = None
    draining: bool = False
    offers: list[str] | None = None
    capacity: int | None = None
    destinations: list[DestinationLoad] = msgspec.field(default_factory=list)
    clock_skew_ms: int | None = None  # by which its clock is ahead of the database's; below 0: behind


class SlotUse(msgspec.Struct, frozen=True):
    """Of one kind of target on one node: how many runs of it execute, and how many may."""

    running: int
    capacity: int


class NodeName(msgspec.Struct, frozen=True, kw_only=True):
    """What runs of the past call by its id."""

    id: str
    name: str


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """`lateness_ms`: how late runs begin on it, at the 99th percentile. `clock_skew_ms`: by how much its clock is ahead
    of the database's, by which all nodes fire; below 0: behind; null: it was lost, or does not say."""

    id: str
    name: str
    host: str
    pid: int
    version: str
    roles: list[str]
    offers: list[str]
    started_at: str
    beat_at: str
    state: str  # alive | draining | lost
    leader: bool
    held: int
    running: int
    capacity: int
    lateness_ms: int | None
    labels: list[str] = msgspec.field(default_factory=list)
    clock_skew_ms: int | None = None
