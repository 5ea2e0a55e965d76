"""RabbitMQ, by AMQP 0.9.1 with publisher confirms. Messages are persistent and mandatory: one that no queue takes is
returned, and the try has failed.

To the default exchange, where a topic is the name of a queue, or to the exchange that the broker's URL names.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import aiormq
from aiormq import spec
from aiormq.abc import AbstractConnection
from aiormq.exceptions import (
    AMQPError,
    ChannelAccessRefused,
    ChannelPreconditionFailed,
    DeliveryError,
    PublishError,
)
from yarl import URL

from onthedot.brokers.message import Message
from onthedot.brokers.publisher import (
    BrokerAway,
    BrokerRefused,
    Confirmed,
    NobodyTakesIt,
    OnLost,
    PublishFailed,
    tls_context,
)
from onthedot.settings import BrokerAddress, BrokerSetting

__all__ = ["connect", "open_connection", "words"]

HEARTBEAT = 10
PERSISTENT = 2
ROUTES = ("CC", "BCC")
"""Headers that RabbitMQ takes for lists of further routing keys. For a text it closes the channel."""
LONGEST_TYPE = 255
OTHER_PROPERTIES = 1024
"""Bytes that they have at most, with the content type."""


async def open_connection(setting: BrokerSetting, address: BrokerAddress) -> AbstractConnection:
    ((host, port),) = address.hosts
    scheme, place = "amqps" if address.tls else "amqp", f"[{host}]" if ":" in host else host
    url = URL(
        f"{scheme}://{place}:{port}/{quote(address.path, safe='')}?heartbeat={HEARTBEAT}&name=onthedot", encoded=True
    )
    url = url.with_user(address.user or "guest").with_password(address.password or "guest")
    connection = aiormq.Connection(url, context=await tls_context(setting, address))
    try:
        await connection.connect()
    except BaseException:  # interrupted, it may be connected all the same
        await connection.close()
        raise
    return connection


async def connect(setting: BrokerSetting, address: BrokerAddress, lost: OnLost) -> RabbitPublisher:
    connection = await open_connection(setting, address)
    try:
        channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
        assert isinstance(channel, aiormq.Channel)
        exchange = address.options.get("exchange", "")
        if exchange:
            await channel.exchange_declare(exchange, passive=True)
    except BaseException:
        await connection.close()
        raise
    return RabbitPublisher(connection, channel, exchange, lost)


class RabbitPublisher:
    is_one_connection = True

    def __init__(self, connection: AbstractConnection, channel: aiormq.Channel, exchange: str, lost: OnLost) -> None:
        self._connection, self._channel, self._exchange = connection, channel, exchange
        self._lost, self._why = lost, "the connection was closed"
        self._closing = False
        for part in (connection, channel):
            part.closing.add_done_callback(self._ended)

    async def publish(self, message: Message) -> Confirmed:
        if self._closing or self._channel.is_closed:
            raise BrokerAway(self._why)
        properties = _properties(message)
        if (why := self._unfit(message, properties)) is not None:
            raise BrokerRefused(why)
        try:
            answer = await self._channel.basic_publish(
                message.body,
                exchange=self._exchange,
                routing_key=message.topic,
                properties=properties,
                mandatory=True,
                wait=False,  # for the confirmation, but not for the socket as well: that is one message at a time
            )
        except PublishError:
            raise NobodyTakesIt(f"no queue is bound to {message.topic!r}: the message was returned") from None
        except DeliveryError:
            raise PublishFailed("the broker refused to store the message (basic.nack)") from None
        except (ChannelAccessRefused, ChannelPreconditionFailed) as error:
            # The channel is gone with all that waited on it, and nobody knows which of them it was.
            raise PublishFailed(words(error)) from None
        except (AMQPError, OSError, RuntimeError, asyncio.InvalidStateError) as error:
            raise PublishFailed(f"the connection was lost before confirmation: {words(error)}") from None
        if not isinstance(answer, spec.Basic.Ack):
            raise PublishFailed(f"unexpected response from the broker: {type(answer).__name__}")
        return {"exchange": self._exchange, "routing_key": message.topic, "message_id": message.id}

    def _unfit(self, message: Message, properties: spec.Basic.Properties) -> str | None:
        """Why the broker would close the channel, or the connection, with all that waits on it."""
        if name := next((name for name in ROUTES if name in message.headers), None):
            return f"RabbitMQ takes no text as the header {name}"
        if (size := len(message.content_type.encode())) > LONGEST_TYPE:
            return f"the content-type has {size:,} bytes; RabbitMQ accepts at most {LONGEST_TYPE}"
        size = OTHER_PROPERTIES + sum(map(_header_size, (properties.headers or {}).items()))
        if size > (most := self._channel.max_content_size):
            return f"the headers of the message have {size:,} bytes; the server accepts at most {most:,}"
        return None

    def _ended(self, closing: asyncio.Future[Any]) -> None:
        error = None if closing.cancelled() else closing.exception()
        self._why = "the connection was closed" if error is None else words(error)
        if not self._closing:
            self._closing = True
            self._lost(self._why)

    async def close(self) -> None:
        self._closing = True
        await self._connection.close()


def _properties(message: Message) -> spec.Basic.Properties:
    headers: dict[str, Any] = dict(message.headers)
    if message.key is not None:
        headers["x-onthedot-key"] = message.key
    celery: dict[str, Any] = {}
    if message.task is not None:
        headers |= message.task
        celery = {"correlation_id": message.id, "content_encoding": "utf-8", "priority": 0}
    return spec.Basic.Properties(
        message_id=message.id,
        content_type=message.content_type,
        delivery_mode=PERSISTENT,
        headers=headers,
        app_id="onthedot",
        **celery,
    )


def _header_size(header: tuple[str, Any]) -> int:
    """In bytes, with the lengths and the type before them. Those of Celery that are no texts are small."""
    name, value = header
    return len(name) + len(str(value).encode()) + 6


def words(error: BaseException) -> str:
    return str(error) or type(error).__name__
