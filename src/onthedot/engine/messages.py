"""What actors say to each other. Messages go right only; who needs an answer reads the store."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.store import Claim, Order

__all__ = [
    "LOOK",
    "TICK",
    "Claimed",
    "DispatcherMessage",
    "Fence",
    "Look",
    "Missed",
    "OrdersRead",
    "OwnRows",
    "Return",
    "Tick",
]

Fence = tuple[str, int]
"""(run id, token): with the node's id, what proves that a run is ours."""


class Tick(msgspec.Struct, frozen=True):
    """Timer → Scheduler, by a call: an instant has come, look at the heap."""


class Look(msgspec.Struct, frozen=True):
    """Timer → Scheduler: it is time to look into the store as well."""


TICK = Tick()
LOOK = Look()


class Claimed(msgspec.Struct, frozen=True):
    """What one round of claims brought, pool by pool, with the limit that each was given."""

    claims: Sequence[tuple[str, int, Claim]]


class Missed(msgspec.Struct, frozen=True):
    """A claim or a look at our rows ended without an answer. The database may have done it all the same.

    `claims` are those of the same round that were answered before.
    """

    claims: Sequence[tuple[str, int, Claim]]
    error: Exception


class OwnRows(msgspec.Struct, frozen=True):
    """What the store says this node holds, and what the node thought so when it asked."""

    rows: Sequence[Fence]
    before: dict[str, int]


class OrdersRead(msgspec.Struct, frozen=True):
    """Keeper → Scheduler: cancel, recall, no longer yours. `asked`: the monotonic instant of the question."""

    orders: Sequence[Order]
    asked: float = 0.0


DispatcherMessage = Tick | Look | Claimed | Missed | OwnRows | OrdersRead


class Return(msgspec.Struct, frozen=True):
    """→ Recorder: this one goes back to pending, no try counted."""

    run_id: str
    token: int
