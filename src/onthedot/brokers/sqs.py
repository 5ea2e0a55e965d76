"""SQS, ten messages to a request. In a FIFO queue the run's id is the deduplication id, and the key, or the job, the
group. Without a login in the URL, AWS's usual sources are asked: environment, profile, role."""

from __future__ import annotations

import asyncio
import base64
from contextlib import AsyncExitStack
from functools import lru_cache
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, NoCredentialsError
from botocore.loaders import Loader, create_loader
from botocore.session import Session

from onthedot.brokers.batches import Batches
from onthedot.brokers.message import Message, kombu_envelope
from onthedot.brokers.publisher import BrokerRefused, Confirmed, NobodyTakesIt, OnLost, PublishFailed
from onthedot.settings import BrokerAddress, BrokerSetting

__all__ = ["connect", "entry_of", "is_missing", "open_client"]

PER_REQUEST, REQUESTS = 10, 8
LARGEST = 1 << 20
"""Bytes of a message, and of all messages of a request."""
_NOBODY = {"aws_access_key_id": "-", "aws_secret_access_key": "-"}
_AUTHENTICATED = ("AccessDenied", "AccessDeniedException", "AWS.SimpleQueueService.AccessDenied")
"""Who may not list the queues may well send to one."""


async def connect(setting: BrokerSetting, address: BrokerAddress, lost: OnLost) -> SqsPublisher:
    async with AsyncExitStack() as opening:
        client = await open_client(setting, address, opening)
        return SqsPublisher(client, opening.pop_all())


async def open_client(setting: BrokerSetting, address: BrokerAddress, opening: AsyncExitStack) -> Any:
    """Connections are made for each request; the first one asks whether the login is accepted."""
    ((region, _),) = address.hosts
    login: dict[str, Any] = {}
    if address.user:
        login = {"aws_access_key_id": address.user, "aws_secret_access_key": address.password}
    config = AioConfig(
        connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 1}, max_pool_connections=REQUESTS
    )
    session = get_session()
    session.register_component("data_loader", await asyncio.to_thread(_descriptions))
    client = await opening.enter_async_context(
        session.create_client(
            "sqs",
            region_name=region,
            endpoint_url=address.options.get("endpoint"),
            verify=setting.ca,
            config=config,
            **login,
        )
    )
    try:
        await client.list_queues(MaxResults=1)
    except ClientError as error:
        if _code(error) not in _AUTHENTICATED:
            raise
    return client


@lru_cache(maxsize=1)
def _descriptions() -> Loader:
    """What AWS can do, read from large files: a first client, which is never used, makes the loader keep them."""
    loader, session = create_loader(), Session()
    session.register_component("data_loader", loader)
    session.create_client("sqs", region_name="us-east-1", **_NOBODY).close()
    return loader


class SqsPublisher:
    is_one_connection = False

    def __init__(self, client: Any, opened: AsyncExitStack) -> None:
        self._client, self._opened = client, opened
        self._urls: dict[str, str] = {}
        self._batches: dict[str, Batches] = {}

    async def publish(self, message: Message) -> Confirmed:
        batches = self._batches.get(message.topic)
        if batches is None:
            batches = Batches(self._send, most=PER_REQUEST, at_once=REQUESTS)
            self._batches[message.topic] = batches
        return await batches.confirmed(message)

    async def _send(self, messages: list[Message]) -> list[Confirmed | PublishFailed]:
        topic = messages[0].topic
        entries = [{"Id": str(number), **entry_of(message)} for number, message in enumerate(messages)]
        size = sum(map(_size, entries))
        if size > LARGEST and len(messages) > 1:
            return [await self._send_alone(message) for message in messages]
        if size > LARGEST:
            raise BrokerRefused(f"the message has {size:,} bytes with its headers; SQS accepts at most {LARGEST:,}")
        try:
            url = await self._url(topic)
            answer = await self._client.send_message_batch(QueueUrl=url, Entries=entries)
        except ClientError as error:
            if is_missing(error):
                self._urls.pop(topic, None)
                raise NobodyTakesIt(f"queue {topic!r} not found") from None
            if len(messages) > 1 and not _throttled(error):  # one that is wrong must not take the others with it
                return [await self._send_alone(message) for message in messages]
            final = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") in (400, 413)
            raise (BrokerRefused if final and not _throttled(error) else PublishFailed)(str(error)) from None
        except (BotoCoreError, HTTPClientError, NoCredentialsError, OSError) as error:
            raise PublishFailed(str(error) or type(error).__name__) from None
        return _answers(topic, answer, len(messages))

    async def _send_alone(self, message: Message) -> Confirmed | PublishFailed:
        """So that one that is too large is the only one that fails."""
        try:
            (answer,) = await self._send([message])
        except PublishFailed as failed:
            return failed
        return answer

    async def _url(self, topic: str) -> str:
        url = self._urls.get(topic)
        if url is None:
            url = self._urls[topic] = (await self._client.get_queue_url(QueueName=topic))["QueueUrl"]
        return url

    async def close(self) -> None:
        for batches in self._batches.values():
            await batches.close()
        await self._opened.aclose()


def entry_of(message: Message) -> dict[str, Any]:
    entry: dict[str, Any] = {"MessageBody": message.body.decode()}
    if message.task is not None:
        entry["MessageBody"] = base64.b64encode(kombu_envelope(message)).decode()
    attributes = {**message.headers, "content-type": message.content_type}
    entry["MessageAttributes"] = {
        name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
    }
    if message.topic.endswith(".fifo"):
        entry["MessageDeduplicationId"] = message.id
        entry["MessageGroupId"] = message.key or message.headers.get("x-onthedot-job", message.id)
    return entry


def _size(entry: dict[str, Any]) -> int:
    attributes = entry["MessageAttributes"].items()
    headers = sum(len(name) + len("String") + len(value["StringValue"].encode()) for name, value in attributes)
    return len(entry["MessageBody"].encode()) + headers


def _answers(topic: str, answer: dict[str, Any], count: int) -> list[Confirmed | PublishFailed]:
    found: dict[str, Confirmed | PublishFailed] = {}
    for sent in answer.get("Successful", ()):
        number = {"sequence_number": sent["SequenceNumber"]} if "SequenceNumber" in sent else {}
        found[sent["Id"]] = {"queue": topic, "message_id": sent["MessageId"], **number}
    for failed in answer.get("Failed", ()):
        kind = BrokerRefused if failed.get("SenderFault") else PublishFailed
        found[failed["Id"]] = kind(f"{failed.get('Code')}: {failed.get('Message')}")
    missing = PublishFailed("SQS returned no result for this message")
    return [found.get(str(number), missing) for number in range(count)]


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def is_missing(error: ClientError) -> bool:
    """There is no such queue."""
    return "QueueDoesNotExist" in _code(error) or "NonExistentQueue" in _code(error)


def _throttled(error: ClientError) -> bool:
    return any(word in _code(error) for word in ("Throttl", "RequestExpired", "ExpiredToken", "Overloaded"))
