"""How much of this process its clients may hold, each address and all together.

Whoever can reach the port can open connections and send bytes, without a key. Connections take descriptors, which the
store and the webhooks need too; bytes that wait (half a head, requests behind one that is being answered, answers that
nobody reads) take memory. So both are counted, here, for all connections of one server.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

import msgspec

from onthedot import descriptors

__all__ = ["Bodies", "Limits", "Load", "Member"]

MIB = 1024 * 1024
MOST_CONNECTIONS = descriptors.MOST_CLIENTS
IDLE_SECONDS = 2.0  # for how long a connection must have been of no use before it may be taken for another
LOOK_AGAIN_SECONDS = 0.5
BODY_BYTES = 24 * MIB  # of large bodies that are being read or worked on, in all
TENANT_BODY_BYTES = 17 * MIB


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    connections: int = MOST_CONNECTIONS
    per_address: int = MOST_CONNECTIONS // 2
    waiting_bytes: int = 16 * MIB
    unread_bytes: int = 24 * MIB

    @classmethod
    def here(cls) -> Limits:
        """By how many descriptors this process may have."""
        most = min(MOST_CONNECTIONS, descriptors.for_clients(descriptors.limit()))
        return cls(connections=most, per_address=most // 2)


class Member(Protocol):
    """A connection, as far as it is counted."""

    address: str

    def idle_since(self) -> float | None:
        """Since when nothing is asked or answered on it; None: something is."""

    def is_answered(self) -> bool:
        """No request that came on it waits for its answer."""

    def hang_up(self) -> None: ...


class Load:
    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits.here()
        self.refused = 0
        self._members: dict[Member, None] = {}  # in the order in which they came
        self._by_address: dict[str, int] = {}
        self._waiting = 0
        self._fruitless = -LOOK_AGAIN_SECONDS

    @property
    def connections(self) -> int:
        return len(self._members)

    def admit(self, member: Member) -> bool:
        """False: there are too many already, and none of them is idle."""
        limits, address = self.limits, member.address
        if self._by_address.get(address, 0) >= limits.per_address:
            self._make_room(address)
        elif len(self._members) >= limits.connections:
            self._make_room(None)
        mine = self._by_address.get(address, 0)
        if mine >= limits.per_address or len(self._members) >= limits.connections:
            self.refused += 1
            return False
        self._members[member] = None
        self._by_address[address] = mine + 1
        return True

    def leave(self, member: Member) -> None:
        """Harmless if it is not counted any more."""
        if member not in self._members:
            return
        del self._members[member]
        left = self._by_address[member.address] - 1
        if left:
            self._by_address[member.address] = left
        else:
            del self._by_address[member.address]

    def wait(self, more: int) -> bool:
        """Bytes that came and can't be worked on yet. False: all together would be too much; they are not counted."""
        if self._waiting + more > self.limits.waiting_bytes:
            return False
        self._waiting += more
        return True

    def done(self, less: int) -> None:
        self._waiting -= less

    def _make_room(self, address: str | None) -> None:
        """Some idle connections go, the oldest first: of this address, or of whichever. Several at once, and not again
        right after a look that found none, so that a flood does not make us look at all of them each time."""
        now = asyncio.get_running_loop().time()
        if now - self._fruitless < LOOK_AGAIN_SECONDS:
            return
        idle = [member for member in self._members if address in (None, member.address) and _idle(member, now)]
        if not idle and address is None:  # who holds most gives way, also in the middle of a head
            most = max(self._by_address, key=self._by_address.__getitem__)
            idle = [member for member in self._members if member.address == most and member.is_answered()]
        for member in idle[: max(1, self.limits.connections // 16)]:
            self.leave(member)
            member.hang_up()
        if not idle:
            self._fruitless = now


def _idle(member: Member, now: float) -> bool:
    since = member.idle_since()
    return since is not None and now - since >= IDLE_SECONDS


class Bodies:
    """Large bodies, from their first byte until they are answered. One tenant can't take the room of all others."""

    def __init__(self) -> None:
        self._by_tenant: dict[int, int] = {}
        self._total = 0

    def more(self, tenant: int, size: int) -> bool:
        """False: no room; it is not counted."""
        mine = self._by_tenant.get(tenant, 0) + size
        if mine > TENANT_BODY_BYTES or self._total + size > BODY_BYTES:
            return False
        self._by_tenant[tenant] = mine
        self._total += size
        return True

    def done(self, tenant: int, size: int) -> None:
        self._total -= size
        left = self._by_tenant.pop(tenant) - size
        if left:
            self._by_tenant[tenant] = left
