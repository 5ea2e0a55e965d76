"""SQS, ten messages at a time. What is taken is hidden from others for HIDDEN_FOR seconds, and longer as long as `keep`
says so. In a FIFO queue, a group waits until those of it that were taken are settled."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from onthedot.brokers.reader import ReadFailed, Received, Subscription, TopicMissing
from onthedot.brokers.sqs import is_missing, open_client
from onthedot.settings import BrokerAddress, BrokerSetting

__all__ = ["examine", "open_reader"]

WAIT_SECONDS = 1
HIDDEN_FOR = 30
PER_REQUEST = 10
_FAILURES = (BotoCoreError, ClientError, HTTPClientError, OSError)


async def open_reader(setting: BrokerSetting, address: BrokerAddress, wanted: Subscription) -> SqsReader:
    async with AsyncExitStack() as opening:
        client = await open_client(setting, address, opening)
        url = await _url(client, wanted.topic)
        return SqsReader(client, url, opening.pop_all())


async def examine(setting: BrokerSetting, address: BrokerAddress, wanted: Subscription, dead_letter: str) -> int | None:
    async with AsyncExitStack() as opening:
        client = await open_client(setting, address, opening)
        await _url(client, dead_letter)
        return await _waiting(client, await _url(client, wanted.topic))


async def _url(client: Any, topic: str) -> str:
    try:
        return str((await client.get_queue_url(QueueName=topic))["QueueUrl"])
    except ClientError as error:
        if is_missing(error):
            raise TopicMissing(f"queue {topic!r} not found") from None
        raise


async def _waiting(client: Any, url: str) -> int:
    name = "ApproximateNumberOfMessages"
    found = await client.get_queue_attributes(QueueUrl=url, AttributeNames=[name])
    return int(found["Attributes"][name])


class SqsReader:
    def __init__(self, client: Any, url: str, opened: AsyncExitStack) -> None:
        self._client, self._url, self._opened = client, url, opened
        self._held: dict[str, None] = {}

    async def take(self, most: int) -> list[Received]:
        try:
            answer = await self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=min(most, PER_REQUEST),
                WaitTimeSeconds=WAIT_SECONDS,
                VisibilityTimeout=HIDDEN_FOR,
                MessageAttributeNames=["All"],
                AttributeNames=["All"],
            )
        except _FAILURES as error:
            raise ReadFailed(str(error)) from None
        found = [_read(message) for message in answer.get("Messages", ())]
        self._held |= dict.fromkeys(message.tag for message in found)
        return found

    async def settle(self, received: Sequence[Received]) -> None:
        tags = [message.tag for message in received]
        await self._for_each(tags, "delete_message_batch", {})
        for tag in tags:
            self._held.pop(tag, None)

    async def keep(self) -> None:
        await self._for_each([*self._held], "change_message_visibility_batch", {"VisibilityTimeout": HIDDEN_FOR})

    async def _for_each(self, tags: Sequence[str], verb: str, more: dict[str, Any]) -> None:
        """One that fails comes again."""
        for first in range(0, len(tags), PER_REQUEST):
            entries = [
                {"Id": str(number), "ReceiptHandle": tag, **more}
                for number, tag in enumerate(tags[first : first + PER_REQUEST])
            ]
            try:
                await getattr(self._client, verb)(QueueUrl=self._url, Entries=entries)
            except _FAILURES as error:
                raise ReadFailed(str(error)) from None

    async def lag(self) -> int | None:
        try:
            return await _waiting(self._client, self._url)
        except _FAILURES as error:
            raise ReadFailed(str(error)) from None

    async def close(self) -> None:
        await self._opened.aclose()


def _read(message: dict[str, Any]) -> Received:
    attributes, system = message.get("MessageAttributes", {}), message.get("Attributes", {})
    headers = {name: str(each["StringValue"]) for name, each in attributes.items() if "StringValue" in each}
    return Received(
        body=message["Body"].encode(),
        tag=message["ReceiptHandle"],
        id=headers.get("message-id"),
        place=message["MessageId"],
        key=system.get("MessageGroupId"),
        headers=headers,
    )
