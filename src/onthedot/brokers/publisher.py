"""What a broker's client must be able to do: connect, publish until the broker confirms, and say how it failed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from onthedot.brokers.message import Message
from onthedot.settings import BrokerAddress, BrokerSetting

__all__ = [
    "BrokerAway",
    "BrokerRefused",
    "Confirmed",
    "NobodyTakesIt",
    "OnLost",
    "Open",
    "PublishFailed",
    "Publisher",
    "tls_context",
]

Confirmed = dict[str, Any]
"""What the broker answered: partition and offset, stream and sequence, or an id."""


class PublishFailed(Exception):
    """The broker did not confirm: whether it has the message, nobody knows. It is tried again, with the same id."""

    retryable = True


class BrokerAway(PublishFailed):
    """There is no connection, and nothing was sent."""


class NobodyTakesIt(PublishFailed):
    """The broker is there, but has no stream or queue for it, or none with room. That may change."""


class BrokerRefused(PublishFailed):
    """It answered that it will not take this message, now or later."""

    retryable = False


class Publisher(Protocol):
    """The way to a broker. Publishes overlap; each returns when it is confirmed, or raises PublishFailed."""

    is_one_connection: bool
    """All wait for the same connection: if it answers nobody for a while, it is frozen, and given up. False: each
    request has a connection, and a time-out, of its own; what is slow is not to be interrupted."""

    async def publish(self, message: Message) -> Confirmed: ...

    async def close(self) -> None:
        """Whoever still waits for a confirmation gets PublishFailed. Must not wait for the broker."""
        ...


OnLost = Callable[[str], None]
"""Told once, with the reason, when a connection has ended by itself."""

Open = Callable[[BrokerSetting, BrokerAddress, OnLost], Awaitable[Publisher]]
"""Connects and logs in, or raises any exception."""


async def tls_context(setting: BrokerSetting, address: BrokerAddress) -> ssl.SSLContext | None:
    """In a thread: reading the authorities takes some ten milliseconds."""
    return await asyncio.to_thread(_context, setting) if address.tls else None


def _context(setting: BrokerSetting) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=setting.ca)
    if setting.cert is not None:
        context.load_cert_chain(setting.cert, setting.key)
    return context
