"""Kafka, by a consumer group. Offsets are committed by hand: of each partition up to the first message that is not
settled yet. What another node has taken over meanwhile, it commits itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.errors import (
    CommitFailedError,
    IllegalGenerationError,
    IllegalStateError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)

from onthedot.brokers.kafka import login_of, started
from onthedot.brokers.reader import ReadFailed, Received, Subscription, TopicMissing
from onthedot.settings import BrokerAddress, BrokerSetting

__all__ = ["PartitionOffsets", "examine", "open_reader"]

WAIT_MS = 1000
ANSWERS_WITHIN_MS = 10_000
HELD_FOR_MS = 24 * 3_600_000
"""While the store is away nothing is polled. Whether the node lives, the broker sees by its heartbeats."""
_MOVED = (CommitFailedError, IllegalGenerationError, IllegalStateError, RebalanceInProgressError, UnknownMemberIdError)


async def open_reader(setting: BrokerSetting, address: BrokerAddress, wanted: Subscription) -> KafkaReader:
    consumer = AIOKafkaConsumer(
        group_id=wanted.group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_poll_interval_ms=HELD_FOR_MS,
        rebalance_timeout_ms=ANSWERS_WITHIN_MS,
        **await _arguments(setting, address),
    )
    reader = KafkaReader(consumer)
    consumer.subscribe([wanted.topic], listener=reader.offsets)
    try:
        await started(consumer.start())
        await _check_topic(consumer, wanted.topic)
    except BaseException:
        await consumer.stop()
        raise
    return reader


async def examine(setting: BrokerSetting, address: BrokerAddress, wanted: Subscription, dead_letter: str) -> int | None:
    """With the group's offsets, but without being a member of it."""
    arguments = await _arguments(setting, address)
    async with _started(AIOKafkaConsumer(group_id=None, **arguments)) as consumer:
        await _check_topic(consumer, wanted.topic)
        await _check_topic(consumer, dead_letter)
    async with _started(AIOKafkaConsumer(wanted.topic, group_id=None, **arguments)) as consumer:
        ends = await consumer.end_offsets(sorted(consumer.assignment()))
    group = AIOKafkaConsumer(group_id=wanted.group, enable_auto_commit=False, **arguments)
    group.assign([*ends])
    async with _started(group) as consumer:
        done = {partition: await consumer.committed(partition) or 0 for partition in ends}
    return sum(int(end) - done[partition] for partition, end in ends.items())


@asynccontextmanager
async def _started(consumer: AIOKafkaConsumer) -> AsyncIterator[AIOKafkaConsumer]:
    try:
        await started(consumer.start())
        yield consumer
    finally:
        await consumer.stop()


async def _arguments(setting: BrokerSetting, address: BrokerAddress) -> dict[str, Any]:
    return {
        **await login_of(setting, address),
        "client_id": "onthedot",
        "request_timeout_ms": ANSWERS_WITHIN_MS,
    }


async def _check_topic(consumer: AIOKafkaConsumer, topic: str) -> None:
    if topic not in await consumer.topics():
        raise TopicMissing(f"topic {topic!r} not found")


class PartitionOffsets(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    """Which offsets were given and not settled, by partition, and up to where each may be committed."""

    def __init__(self) -> None:
        self._open: dict[TopicPartition, dict[int, None]] = {}
        self._next: dict[TopicPartition, int] = {}

    def given(self, partition: TopicPartition, offsets: Sequence[int]) -> None:
        self._open.setdefault(partition, {}).update(dict.fromkeys(offsets))
        self._next[partition] = offsets[-1] + 1

    def settled(self, places: Sequence[tuple[TopicPartition, int]]) -> dict[TopicPartition, int]:
        """What may be committed now, of the partitions that these belong to and that are still ours."""
        touched = set()
        for partition, offset in places:
            if partition in self._open:
                self._open[partition].pop(offset, None)
                touched.add(partition)
        return {each: min(self._open[each], default=self._next[each]) for each in touched}

    async def on_partitions_revoked(self, revoked: Sequence[TopicPartition]) -> None:
        for partition in revoked:
            self._open.pop(partition, None)
            self._next.pop(partition, None)

    async def on_partitions_assigned(self, assigned: Sequence[TopicPartition]) -> None:
        """Given with the first message of each."""


class KafkaReader:
    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer, self.offsets = consumer, PartitionOffsets()

    async def take(self, most: int) -> list[Received]:
        try:
            found = await self._consumer.getmany(timeout_ms=WAIT_MS, max_records=most)
        except KafkaError as error:
            raise ReadFailed(_words(error)) from None
        for partition, records in found.items():
            self.offsets.given(partition, [record.offset for record in records])
        return [_read(partition, record) for partition, records in found.items() for record in records]

    async def settle(self, received: Sequence[Received]) -> None:
        offsets = self.offsets.settled([message.tag for message in received])
        if not offsets:
            return
        try:
            await self._consumer.commit(offsets)
        except _MOVED:
            pass  # another node has the partition by now: it gets these again, and they change nothing
        except KafkaError as error:
            raise ReadFailed(_words(error)) from None

    async def keep(self) -> None:
        """The library's heartbeats do."""

    async def lag(self) -> int | None:
        """Of the partitions that this node reads."""
        total, told = 0, False
        for partition in self._consumer.assignment():
            high = self._consumer.highwater(partition)
            if high is not None:
                total, told = total + high - await self._consumer.position(partition), True
        return total if told else None

    async def close(self) -> None:
        await self._consumer.stop()


def _read(partition: TopicPartition, record: Any) -> Received:
    headers = {name: value.decode(errors="replace") for name, value in record.headers or ()}
    lowered = {name.lower(): value for name, value in headers.items()}
    return Received(
        body=record.value or b"",
        tag=(partition, record.offset),
        id=lowered.get("message-id"),
        place=f"{partition.topic}/{partition.partition}/{record.offset}/{record.timestamp}",
        key=None if record.key is None else record.key.decode(errors="replace"),
        headers=headers,
    )


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
