"""Kafka and SQS, as far as others simulate them: the mock cluster of librdkafka, and moto."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from aiokafka import TopicPartition

from onthedot.brokers.reader import ReadFailed, Received
from onthedot.brokers.readers import sqs as sqs_reader
from onthedot.brokers.readers.kafka import PartitionOffsets
from onthedot.intake import examine_intakes
from onthedot.service import Service
from onthedot.telemetry import Event
from tests.intake.desk import JOB, Desk, handled, jobs_of
from tests.services.brokers import BrokerServer
from tests.services.consumers import CONSUMERS
from tests.services.senders import SENDERS
from tests.services.simulated import FromKafka, FromSqs, running_kafka, running_sqs

pytestmark = pytest.mark.timeout(180)
HERE = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def kafka() -> Iterator[BrokerServer]:
    with running_kafka() as server:
        yield server


async def test_offsets_are_committed_after_the_store(
    kafka: BrokerServer, service: Service, events: list[Event], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(CONSUMERS, "kafka", FromKafka())
    desk = await Desk.opened("kafka", kafka, 1)
    await SENDERS["kafka"](kafka, desk.dead, [("d", b"{}")])  # makes the topic
    await desk.send(
        {"op": "create", "key": "a", "job": JOB},
        b"bad",
        {"op": "patch", "key": "a", "patch": {"name": "n"}},
    )
    async with desk.reading(service):
        assert await handled(events, 3) == {"ok": 2, "repeated": 0, "refused": 1}
        letters = [each for each in await desk.letters(2) if each]
    assert letters[0]["message"]["place"].startswith(f"{desk.topic}/")
    assert (await service.get_job_by_key(1, "a")).name == "n"
    (found,) = await examine_intakes(desk.settings())
    assert found.advice is None, found
    assert "0 messages waiting" in found.found
    assert list(await jobs_of(service)) == ["a"]
    await desk.send({"op": "create", "key": "b", "job": JOB})
    (found,) = await examine_intakes(desk.settings())  # the next one goes on where this one was
    assert found.found.count(" 1 messages waiting") == 1, found
    (found,) = await examine_intakes(desk.settings(topic="nothing.here"))
    assert found.advice is not None


async def test_only_what_all_before_it_is_settled_too_may_be_committed():
    offsets = PartitionOffsets()
    offsets.given(HERE, [5, 6, 7])
    assert offsets.settled([(HERE, 6), (HERE, 7)]) == {HERE: 5}
    offsets.given(HERE, [8])
    assert offsets.settled([(HERE, 5)]) == {HERE: 8}
    assert offsets.settled([(HERE, 8)]) == {HERE: 9}
    await offsets.on_partitions_revoked([HERE])
    assert offsets.settled([(HERE, 8)]) == {}


async def test_sqs_gives_what_was_not_settled_again(
    service: Service, events: list[Event], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sqs_reader, "HIDDEN_FOR", 1)
    monkeypatch.setitem(CONSUMERS, "sqs", FromSqs())
    settle = sqs_reader.SqsReader.settle
    lost: list[int] = []

    async def lose(self: sqs_reader.SqsReader, received: Sequence[Received]) -> None:
        if lost:
            await settle(self, received)
            return
        lost.append(len(received))
        raise ReadFailed("the connection was lost")

    monkeypatch.setattr(sqs_reader.SqsReader, "settle", lose)
    with running_sqs() as server:
        desk = await Desk.opened("sqs", server, 1)
        await desk.send({"op": "create", "job": JOB}, b"bad")
        async with desk.reading(service):
            found = await handled(events, 2)
            (letter,) = await desk.letters(1)
        (finding,) = await examine_intakes(desk.settings())
    assert (found["repeated"], lost) == (1, [1])
    assert letter["message"]["body"] == "bad"
    assert len(await jobs_of(service)) == 1
    assert finding.advice is None, finding
