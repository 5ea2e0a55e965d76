"""Kafka, with acks=all and an idempotent producer. The library batches, finds the leaders and connects again by itself.

The key is the job's, or the run's id, so that a repeat goes to the same partition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    InvalidTopicError,
    KafkaError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumber,
    ProducerClosed,
    ProducerFenced,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

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

__all__ = ["connect", "login_of", "started"]

GATHER_MS = 2
ANSWERS_WITHIN_MS = 10_000
STARTS_WITHIN = 0.5
_FINAL = (InvalidTopicError, MessageSizeTooLargeError, RecordListTooLargeError, TopicAuthorizationFailedError)
_BROKEN = (OutOfOrderSequenceNumber, ProducerClosed, ProducerFenced)


async def login_of(setting: BrokerSetting, address: BrokerAddress) -> dict[str, Any]:
    """Where it is, and who we are: what producers and consumers have in common."""
    login: dict[str, Any] = {}
    if address.user is not None:
        login = {
            "sasl_mechanism": address.options.get("mechanism", "PLAIN"),
            "sasl_plain_username": address.user,
            "sasl_plain_password": address.password or "",
        }
    protocol = ("SASL_" if login else "") + ("SSL" if address.tls else "PLAINTEXT")
    return {
        "bootstrap_servers": [f"{host}:{port}" for host, port in address.hosts],
        "security_protocol": protocol,
        "ssl_context": await tls_context(setting, address),
        **login,
    }


async def started(starting: Coroutine[Any, Any, None]) -> None:
    """If it is interrupted, it may still come to its end: the library would leave its first connection open."""
    task = asyncio.ensure_future(starting)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=STARTS_WITHIN)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise


async def connect(setting: BrokerSetting, address: BrokerAddress, lost: OnLost) -> KafkaPublisher:
    producer = AIOKafkaProducer(
        client_id="onthedot",
        acks="all",
        enable_idempotence=True,
        linger_ms=GATHER_MS,
        request_timeout_ms=ANSWERS_WITHIN_MS,
        **await login_of(setting, address),
    )
    try:
        await started(producer.start())
    except BaseException:
        await producer.stop()
        raise
    return KafkaPublisher(producer, lost)


class KafkaPublisher:
    is_one_connection = True

    def __init__(self, producer: AIOKafkaProducer, lost: OnLost) -> None:
        self._producer, self._lost = producer, lost

    async def publish(self, message: Message) -> Confirmed:
        headers = [(name, value.encode()) for name, value in message.headers.items()]
        headers.append(("content-type", message.content_type.encode()))
        key = (message.key or message.id).encode()
        try:
            record = await self._producer.send_and_wait(message.topic, message.body, key=key, headers=headers)
        except _BROKEN as error:
            raise BrokerAway(_words(error)) from None
        except KafkaError as error:
            if isinstance(error, UnknownTopicOrPartitionError):
                raise NobodyTakesIt(f"topic {message.topic!r} not found") from None
            raise (BrokerRefused if isinstance(error, _FINAL) else PublishFailed)(_words(error)) from None
        return {"topic": record.topic, "partition": record.partition, "offset": record.offset}

    async def close(self) -> None:
        await self._producer.stop()


def _words(error: KafkaError) -> str:
    return str(error) or type(error).__name__
