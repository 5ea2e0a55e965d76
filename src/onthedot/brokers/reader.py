"""What a broker's client must be able to do to read: give messages in order, and let go of those that are settled.

A message that was not settled comes again, to this node or another one: after a lost connection, a crash, a restart.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec

from onthedot.settings import BrokerAddress, BrokerSetting

__all__ = ["Examine", "OpenReader", "ReadFailed", "Received", "Subscription", "TopicMissing", "TopicReader"]


class ReadFailed(Exception):
    """The connection is of no more use. What was not settled comes again on the next one."""


class TopicMissing(ReadFailed):
    """The broker is there, but has no such topic, stream or queue."""


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """`group`: nodes that name the same one share the messages between them. `most`: that are given and not settled."""

    topic: str
    group: str
    most: int


class Received(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """`id`: what the sender calls it. `place`: what the broker knows it by, the same whenever it comes; None if it does
    not number its messages. `tag`: for the reader alone."""

    body: bytes
    tag: Any
    id: str | None = None
    place: str | None = None
    key: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class TopicReader(Protocol):
    """One connection. All of it may raise ReadFailed."""

    async def take(self, most: int) -> list[Received]:
        """In the order in which the broker gives them. Waits a second at most; none if there are none."""
        ...

    async def settle(self, received: Sequence[Received]) -> None:
        """They never come again, unless this gets lost. Also out of order."""
        ...

    async def keep(self) -> None:
        """What was given and is not settled is still being worked on: nobody else may have it yet."""
        ...

    async def lag(self) -> int | None:
        """How many messages wait that nobody has taken; None if the broker does not tell."""
        ...

    async def close(self) -> None:
        """Must not wait for long."""
        ...


OpenReader = Callable[[BrokerSetting, BrokerAddress, Subscription], Awaitable[TopicReader]]
"""Connects, logs in and subscribes, or raises any exception."""

Examine = Callable[[BrokerSetting, BrokerAddress, Subscription, str], Awaitable[int | None]]
"""How many messages wait. Takes none of them, and joins no group. TopicMissing if the topic is not there, or the one
for dead letters, which is the last argument."""
