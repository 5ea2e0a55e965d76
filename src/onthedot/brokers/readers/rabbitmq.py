"""RabbitMQ: a consumer with a prefetch. Queues are the operator's.

The broker gives what is not acknowledged to another consumer as soon as this connection ends. It does not number its
messages: only the sender can, by the property `message_id`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import aiormq
from aiormq.abc import AbstractConnection, DeliveredMessage
from aiormq.exceptions import AMQPError, ChannelNotFoundEntity

from onthedot.brokers.rabbitmq import open_connection, words
from onthedot.brokers.reader import ReadFailed, Received, Subscription, TopicMissing
from onthedot.settings import BrokerAddress, BrokerSetting

__all__ = ["examine", "open_reader"]

WAIT = 1.0
ANSWERS_WITHIN = 5.0
_FAILURES = (AMQPError, OSError, RuntimeError, asyncio.InvalidStateError, TimeoutError)


async def open_reader(setting: BrokerSetting, address: BrokerAddress, wanted: Subscription) -> RabbitReader:
    connection = await open_connection(setting, address)
    try:
        await _waiting(connection, wanted.topic)
        channel = await connection.channel()
        assert isinstance(channel, aiormq.Channel)
        reader = RabbitReader(connection, channel, wanted.topic)
        await channel.basic_qos(prefetch_count=wanted.most)
        await channel.basic_consume(wanted.topic, reader.arrived)
    except BaseException:
        await connection.close()
        raise
    return reader


async def examine(setting: BrokerSetting, address: BrokerAddress, wanted: Subscription, dead_letter: str) -> int | None:
    """Where the broker's URL names an exchange, dead letters go there: what is bound to it, nobody can ask."""
    connection = await open_connection(setting, address)
    try:
        if not address.options.get("exchange"):
            await _waiting(connection, dead_letter)
        return await _waiting(connection, wanted.topic)
    finally:
        await connection.close()


async def _waiting(connection: AbstractConnection, queue: str) -> int | None:
    """On a channel of its own: to ask for a queue that is not there closes it."""
    channel = await connection.channel()
    try:
        found = await channel.queue_declare(queue, passive=True, timeout=ANSWERS_WITHIN)
    except ChannelNotFoundEntity:
        raise TopicMissing(f"queue {queue!r} not found") from None
    await channel.close()
    return found.message_count


class RabbitReader:
    def __init__(self, connection: AbstractConnection, channel: aiormq.Channel, queue: str) -> None:
        self._connection, self._channel, self._queue = connection, channel, queue
        self._arrived: asyncio.Queue[DeliveredMessage] = asyncio.Queue()  # bounded by the prefetch
        self._ended = asyncio.get_running_loop().create_future()
        for part in (connection, channel):
            part.closing.add_done_callback(self._end)

    async def arrived(self, message: DeliveredMessage) -> None:
        self._arrived.put_nowait(message)

    def _end(self, closing: asyncio.Future[Any]) -> None:
        error = None if closing.cancelled() else closing.exception()
        if not self._ended.done():
            self._ended.set_result("the connection was closed" if error is None else words(error))

    async def take(self, most: int) -> list[Received]:
        self._check()
        if self._arrived.empty():
            waiting = asyncio.ensure_future(self._arrived.get())
            try:
                await asyncio.wait([waiting, self._ended], timeout=WAIT, return_when=asyncio.FIRST_COMPLETED)
            finally:
                first = waiting.result() if waiting.done() and not waiting.cancelled() else None
                waiting.cancel()
            self._check()
            found = [] if first is None else [first]
        else:
            found = []
        while not self._arrived.empty() and len(found) < most:
            found.append(self._arrived.get_nowait())
        return [_read(message) for message in found]

    async def settle(self, received: Sequence[Received]) -> None:
        self._check()
        try:
            for message in received:
                await self._channel.basic_ack(message.tag, wait=message is received[-1])
        except _FAILURES as error:
            raise ReadFailed(words(error)) from None

    async def keep(self) -> None:
        """A connection that lives keeps what it was given."""
        self._check()

    async def lag(self) -> int | None:
        try:
            return await _waiting(self._connection, self._queue)
        except _FAILURES as error:
            raise ReadFailed(words(error)) from None

    def _check(self) -> None:
        if self._ended.done():
            raise ReadFailed(self._ended.result())

    async def close(self) -> None:
        await self._connection.close()


def _read(message: DeliveredMessage) -> Received:
    properties = message.header.properties
    headers = {str(name): _text(value) for name, value in (properties.headers or {}).items()}
    if properties.content_type:
        headers["content-type"] = properties.content_type
    return Received(
        body=message.body,
        tag=message.delivery_tag,
        id=properties.message_id or None,
        key=headers.get("x-onthedot-key"),
        headers=headers,
    )


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, (bytes, bytearray)) else str(value)
