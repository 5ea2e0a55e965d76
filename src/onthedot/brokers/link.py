"""The way to one broker: connected when the first message wants to leave, kept, connected again, closed with the node.

A broker that refuses connections answers at once; while it is away, no more than one connection is tried at a time, and
messages fail with its last error. One that is frozen keeps its messages until their time-out; then the connection is
given up, and the next one, which can't be made, fails the others early. Where each request has a connection of its own,
nothing is given up with a message that times out: a service that is slow would do what is under way in vain, and again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from onthedot.brokers.message import Message
from onthedot.brokers.publisher import BrokerAway, Confirmed, Open, Publisher, PublishFailed
from onthedot.brokers.reader import ReadFailed
from onthedot.errors import OnTheDotError
from onthedot.settings import BrokerAddress, BrokerSetting, WrongBroker
from onthedot.telemetry import emit

__all__ = ["CLOSE_WITHIN", "CONNECT_WITHIN", "BrokerLink", "NotAllowed", "reason"]

CONNECT_WITHIN = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0
STALLED = 3.0
"""Seconds without any answer, after which a message that times out takes the connection with it."""
CLOSE_WITHIN = 2.0


class NotAllowed(Exception):
    """While it waited for a connection, the call lost its right to begin."""


class BrokerLink:
    def __init__(self, name: str, setting: BrokerSetting, open_: Open) -> None:
        self.name, self.setting = name, setting
        self._open = open_
        self._publisher: Publisher | None = None
        self._opening: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._why: str | None = None  # it is away; None: it is there, or nobody has asked
        self._pause, self._again_at = FIRST_PAUSE, 0.0
        self._silent_since: float | None = None  # it has answered nothing that was sent since
        self.waiting = 0

    async def publish(self, message: Message, may_begin: Callable[[], bool]) -> Confirmed:
        self.waiting += 1
        try:
            publisher = self._publisher
            if publisher is None:
                publisher = await self._connected()
                if not may_begin():
                    raise NotAllowed
            return await self._confirmed(publisher, message)
        finally:
            self.waiting -= 1

    async def _confirmed(self, publisher: Publisher, message: Message) -> Confirmed:
        if self._silent_since is None:
            self._silent_since = time.monotonic()
        try:
            confirmed = await publisher.publish(message)
        except asyncio.CancelledError:
            silent = time.monotonic() - (self._silent_since or time.monotonic())
            if publisher.is_one_connection and silent >= STALLED:
                self._lost(publisher, "it no longer confirms messages")
            raise
        except BrokerAway as error:
            self._lost(publisher, str(error))
            raise
        except PublishFailed:
            self._silent_since = None
            raise
        self._silent_since = None if self.waiting == 1 else time.monotonic()
        return confirmed

    async def _connected(self) -> Publisher:
        if self._opening is None:
            if time.monotonic() < self._again_at:
                raise BrokerAway(self._why)
            self._opening = asyncio.create_task(self._connect())
        await asyncio.shield(self._opening)
        if self._publisher is None:
            raise BrokerAway(self._why)
        return self._publisher

    async def _connect(self) -> None:
        """Never raises: all who wait for it read what became of it."""
        made: list[Publisher] = []
        try:
            address = self.setting.login()
            async with asyncio.timeout(CONNECT_WITHIN):
                publisher = await self._open(
                    self.setting, address, lambda why: self._lost(made[0] if made else None, why)
                )
        except TimeoutError:
            self._away(f"it did not respond within {CONNECT_WITHIN:g} s")
        except Exception as error:
            self._away(reason(error, self.setting))
        else:
            made.append(publisher)
            self._publisher, self._pause = publisher, FIRST_PAUSE
            if self._why is not None:
                self._why = None
                emit("broker.back", broker=self.name)
            else:
                emit("broker.connected", broker=self.name)
        finally:
            self._opening = None

    def _away(self, why: str) -> None:
        self._again_at = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        if self._why is None:  # told once, not with every message
            emit("broker.unavailable", broker=self.name, error=why)
        self._why = why

    def _lost(self, publisher: Publisher | None, why: str) -> None:
        if publisher is None or publisher is not self._publisher:
            return
        self._publisher = self._silent_since = None
        self._away(why)
        self._again_at = 0.0  # it may have been restarted: the next message finds out
        closing = asyncio.get_running_loop().create_task(_closed(publisher))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening})
        if self._publisher is not None:
            publisher, self._publisher = self._publisher, None
            await _closed(publisher)
        if self._closing:
            await asyncio.wait(self._closing)


async def _closed(publisher: Publisher) -> None:
    """A broker that is frozen does not keep the node from stopping."""
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_WITHIN):
            await publisher.close()


def reason(error: BaseException, setting: BrokerSetting) -> str:
    """In words, without the password, whatever a client library writes into its errors."""
    if isinstance(error, PublishFailed | ReadFailed | WrongBroker | OnTheDotError):
        text = str(error)
    else:
        name, text = type(error).__name__, str(error)
        text = text if text.startswith(name) else f"{name}: {text}".removesuffix(": ")
    for secret in _secrets(setting):
        text = text.replace(secret, "•••")
    return text[:500]


def _secrets(setting: BrokerSetting) -> list[str]:
    found: list[BrokerAddress] = [setting.address(None)]
    with suppress(WrongBroker):
        found.append(setting.login())
    return [address.password for address in found if address.password]
