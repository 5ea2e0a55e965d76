"""Sending messages past all of our own code: with another connection, and where there is one, another library."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import amqp
import nats
import redis.asyncio

from tests.services.brokers import PASSWORD, USER, BrokerServer

__all__ = ["SENDERS", "Sent"]

Sent = Sequence[tuple[str, bytes]]  # id and body
Send = Callable[[BrokerServer, str, Sent], Awaitable[None]]


async def to_nats(server: BrokerServer, topic: str, messages: Sent) -> None:
    client = await nats.connect(server.url)
    try:
        stream = client.jetstream()
        for number, body in messages:
            await stream.publish(topic, body, headers={"Nats-Msg-Id": number})
    finally:
        await client.close()


async def to_redis(server: BrokerServer, topic: str, messages: Sent) -> None:
    client = redis.asyncio.Redis(port=server.port, username=USER, password=PASSWORD)
    try:
        pipeline = client.pipeline(transaction=False)
        for number, body in messages:
            pipeline.xadd(topic, {"id": number, "body": body})
        await pipeline.execute()
    finally:
        await client.aclose()


async def to_rabbit(server: BrokerServer, topic: str, messages: Sent) -> None:
    def publish() -> None:
        with amqp.Connection(
            f"127.0.0.1:{server.port}", userid=USER, password=PASSWORD, confirm_publish=True
        ) as connection:
            channel = connection.channel()
            for number, body in messages:
                channel.basic_publish(amqp.Message(body, message_id=number, delivery_mode=2), routing_key=topic)

    await asyncio.to_thread(publish)


async def to_kafka(server: BrokerServer, topic: str, messages: Sent) -> None:
    from confluent_kafka import Producer

    def produce() -> None:
        producer = Producer({"bootstrap.servers": server.url.removeprefix("kafka://"), "linger.ms": 0})
        for number, body in messages:
            producer.produce(topic, body, key=topic, headers=[("message-id", number.encode())])
        assert producer.flush(20) == 0

    await asyncio.to_thread(produce)


async def to_sqs(server: BrokerServer, topic: str, messages: Sent) -> None:
    from tests.services.simulated import FromSqs

    def send() -> None:
        client = FromSqs().client(server)
        url = client.get_queue_url(QueueName=topic)["QueueUrl"]
        for number, body in messages:
            attributes = {"message-id": {"DataType": "String", "StringValue": number}}
            client.send_message(QueueUrl=url, MessageBody=body.decode(), MessageAttributes=attributes)
        client.close()

    await asyncio.to_thread(send)


SENDERS: dict[str, Send] = {
    "nats": to_nats,
    "redis": to_redis,
    "rabbitmq": to_rabbit,
    "kafka": to_kafka,
    "sqs": to_sqs,
}
