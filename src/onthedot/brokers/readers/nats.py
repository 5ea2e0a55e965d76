"""NATS JetStream, by a durable pull consumer with the group's name, which is made when it is not there. The stream is
the operator's.

What is taken is ours for ACK_WAIT seconds, and longer as long as `keep` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.errors import TimeoutError as NothingThere
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.errors import NotFoundError

from onthedot.brokers.nats import open_client, words
from onthedot.brokers.reader import ReadFailed, Received, Subscription, TopicMissing
from onthedot.settings import BrokerAddress, BrokerSetting

__all__ = ["examine", "open_reader"]

ACK_WAIT = 30.0
WAIT, GATHER = 1.0, 0.03
ANSWERS_WITHIN = 5.0


async def open_reader(setting: BrokerSetting, address: BrokerAddress, wanted: Subscription) -> NatsReader:
    events = _Events()
    client = await open_client(setting, address, events)
    try:
        stream = client.jetstream(timeout=ANSWERS_WITHIN)
        name = await _stream_of(stream, wanted.topic)
        config = ConsumerConfig(
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=ACK_WAIT,
            max_ack_pending=max(1000, wanted.most),
            filter_subject=wanted.topic,
        )
        consumer = await stream.pull_subscribe(wanted.topic, durable=wanted.group, stream=name, config=config)
    except BaseException:
        await client.close()
        raise
    return NatsReader(client, consumer, events)


async def examine(setting: BrokerSetting, address: BrokerAddress, wanted: Subscription, dead_letter: str) -> int | None:
    client = await open_client(setting, address, _Events())
    try:
        stream = client.jetstream(timeout=ANSWERS_WITHIN)
        name = await _stream_of(stream, wanted.topic)
        await _stream_of(stream, dead_letter)
        try:
            waiting: int | None = (await stream.consumer_info(name, wanted.group)).num_pending
        except NotFoundError:  # nobody has read yet
            return None
        return waiting
    finally:
        await client.close()


async def _stream_of(stream: JetStreamContext, topic: str) -> str:
    try:
        return await stream.find_stream_name_by_subject(topic)
    except NotFoundError:
        raise TopicMissing(f"no JetStream stream has the subject {topic!r}") from None


class _Events:
    """What becomes of the connection."""

    def __init__(self) -> None:
        self.why: str | None = None

    async def told(self, error: Exception) -> None:
        self.why = words(error)

    async def ended(self) -> None:
        """The next call finds out."""


class NatsReader:
    def __init__(self, client: Client, consumer: JetStreamContext.PullSubscription, events: _Events) -> None:
        self._client, self._consumer, self._events = client, consumer, events
        self._held: dict[int, Msg] = {}

    async def take(self, most: int) -> list[Received]:
        """The server would wait for a full batch: so the first one is waited for, and the others hardly."""
        self._check()
        try:
            messages = await self._consumer.fetch(1, timeout=WAIT)
            if most > 1:
                with suppress(TimeoutError, NothingThere):
                    messages += await self._consumer.fetch(most - 1, timeout=GATHER)
        except (TimeoutError, NothingThere):
            self._check()
            return []
        except Error as error:
            raise ReadFailed(words(error)) from None
        found = [_read(message) for message in messages]
        self._held |= {id(message): message for message in messages}
        return found

    async def settle(self, received: Sequence[Received]) -> None:
        self._check()
        try:
            for message in received:
                await message.tag.ack()
                self._held.pop(id(message.tag), None)
            await self._client.flush()
        except Error as error:
            raise ReadFailed(words(error)) from None

    async def keep(self) -> None:
        self._check()
        try:
            for message in [*self._held.values()]:
                await message.in_progress()
        except Error as error:
            raise ReadFailed(words(error)) from None

    async def lag(self) -> int | None:
        try:
            return (await self._consumer.consumer_info()).num_pending
        except Error as error:
            raise ReadFailed(words(error)) from None

    def _check(self) -> None:
        if not self._client.is_connected:
            raise ReadFailed(self._events.why or "the connection was lost")

    async def close(self) -> None:
        await self._client.close()


def _read(message: Msg) -> Received:
    headers = {name: str(value) for name, value in (message.headers or {}).items()}
    about = message.metadata
    place = f"{about.stream}/{about.sequence.stream}/{about.timestamp.timestamp():.6f}"
    lowered = {name.lower(): value for name, value in headers.items()}
    return Received(
        body=message.data,
        tag=message,
        id=lowered.get("nats-msg-id"),
        place=place,
        key=lowered.get("x-onthedot-key"),
        headers=headers,
    )
