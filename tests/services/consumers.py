"""Reading back what was published, past all of our own code: with another connection, and mostly another library."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import amqp
import nats
import redis.asyncio
from nats.errors import TimeoutError as NothingLeft

from tests.services.brokers import PASSWORD, USER, BrokerServer

__all__ = ["CONSUMERS", "Consumed", "Consumer"]


class Consumed(NamedTuple):
    id: str | None  # the run's, where this broker keeps it
    body: bytes
    headers: Mapping[str, Any]


class Consumer(Protocol):
    async def prepare(self, server: BrokerServer, topic: str) -> None:
        """Make the stream or queue, to last."""

    async def consume(self, server: BrokerServer, topic: str) -> list[Consumed]:
        """All that is there."""
        ...


class FromNats:
    async def prepare(self, server: BrokerServer, topic: str) -> None:
        client = await nats.connect(server.url)
        try:
            await client.jetstream().add_stream(name=topic.replace(".", "-"), subjects=[topic])
        finally:
            await client.close()

    async def consume(self, server: BrokerServer, topic: str) -> list[Consumed]:
        client = await nats.connect(server.url)
        found: list[Consumed] = []
        try:
            stream = client.jetstream()
            count = (await stream.stream_info(topic.replace(".", "-"))).state.messages
            subscription = await stream.pull_subscribe(topic)
            while len(found) < count:
                try:
                    messages = await subscription.fetch(500, timeout=2)
                except NothingLeft:
                    break
                for message in messages:
                    headers = message.headers or {}
                    found.append(Consumed(headers.get("Nats-Msg-Id"), message.data, headers))
                    await message.ack()
            await client.flush()
        finally:
            await client.close()
        return found


class FromRedis:
    async def prepare(self, server: BrokerServer, topic: str) -> None:
        """XADD makes the stream."""

    async def consume(self, server: BrokerServer, topic: str) -> list[Consumed]:
        client = redis.asyncio.Redis(port=server.port, username=USER, password=PASSWORD)
        try:
            entries: Any = await client.xrange(topic)
        finally:
            await client.aclose()
        found = []
        for _, entry in entries:
            body = entry.pop(b"body")
            headers = {name.decode(): value.decode() for name, value in entry.items()}
            found.append(Consumed(headers.get("id"), body, headers))
        return found


class FromRabbit:
    async def prepare(self, server: BrokerServer, topic: str) -> None:
        def declare() -> None:
            with _rabbit(server) as connection:
                connection.channel().queue_declare(topic, durable=True, auto_delete=False)

        await asyncio.to_thread(declare)

    async def consume(self, server: BrokerServer, topic: str) -> list[Consumed]:
        def read() -> list[Consumed]:
            found = []
            with _rabbit(server) as connection:
                channel = connection.channel()
                while (message := channel.basic_get(topic, no_ack=True)) is not None:
                    body = message.body.encode() if isinstance(message.body, str) else message.body
                    headers = {**message.headers, "content-type": message.properties.get("content_type")}
                    found.append(Consumed(message.properties.get("message_id"), body, headers))
            return found

        return await asyncio.to_thread(read)


def _rabbit(server: BrokerServer) -> amqp.Connection:
    return amqp.Connection(f"127.0.0.1:{server.port}", userid=USER, password=PASSWORD)


CONSUMERS: dict[str, Consumer] = {"nats": FromNats(), "redis": FromRedis(), "rabbitmq": FromRabbit()}
