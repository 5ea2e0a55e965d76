"""What actors say to the Dispatcher and to the Recorder. (The BeginGate has a mailbox, too: for Monitors themselves.)

On the way of a run, messages go right only: Timer → Dispatcher → Monitor → target → Recorder. From beside it
come Keeper's messages (orders, the end of the lease), and the store's answers to what the Dispatcher itself asked. What
goes back are calls of functions that were passed down: a kind's questions and its result to its Monitor, and a
Monitor's "my slot is free" to its Dispatcher.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.store import Adopted, Claim, Finished, Order, TurnedAway

__all__ = [
    "LEASE_ENDED",
    "ROOM_FREED",
    "Answer",
    "Claimed",
    "Detach",
    "DispatcherMessage",
    "Fence",
    "LeaseEnded",
    "Missed",
    "OrdersRead",
    "OwnRows",
    "RecorderMessage",
    "Return",
    "RoomFreed",
]

Fence = tuple[str, int]
"""(run id, token): with the node's id, what proves that a run is ours."""


class RoomFreed(msgspec.Struct, frozen=True):
    """Dispatcher → itself: slots that a claim waits for came free. Once for all that end in one turn of the loop."""


class LeaseEnded(msgspec.Struct, frozen=True):
    """Keeper → Dispatcher: others may start what we run."""


ROOM_FREED = RoomFreed()
LEASE_ENDED = LeaseEnded()


class Claimed(msgspec.Struct, frozen=True):
    """What one round of claims brought, pool by pool, with the limit that each was given; and the open runs that were
    adopted before."""

    claims: Sequence[tuple[str, int, Claim]]
    adopted: Sequence[Adopted] = ()


class Missed(msgspec.Struct, frozen=True):
    """A claim or a look at our rows ended without an answer. The database may have done it all the same.

    `claims` and `adopted` are those of the same round that were answered before.
    """

    claims: Sequence[tuple[str, int, Claim]]
    error: Exception
    adopted: Sequence[Adopted] = ()


class OwnRows(msgspec.Struct, frozen=True):
    """What the store says this node holds, and what the node thought so when it asked."""

    rows: Sequence[Fence]
    before: dict[str, int]


class OrdersRead(msgspec.Struct, frozen=True):
    """Keeper → Dispatcher: cancel, recall, no longer yours. `asked`: the monotonic instant of the question."""

    orders: Sequence[Order]
    asked: float = 0.0


Answer = Claimed | Missed | OwnRows
DispatcherMessage = Answer | RoomFreed | OrdersRead | LeaseEnded


class Detach(msgspec.Struct, frozen=True):
    """→ Recorder: what this one has started goes on without this node; another one adopts it. No try, no loss."""

    run_id: str
    token: int


class Return(msgspec.Struct, frozen=True):
    """→ Recorder: this one goes back to pending, no try counted."""

    run_id: str
    token: int


RecorderMessage = Finished | Return | Detach | TurnedAway
"""TurnedAway: this one waits for its destination in the store, no try counted."""
