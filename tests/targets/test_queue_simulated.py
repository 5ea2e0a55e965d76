"""Kafka and SQS, as far as others simulate them: the mock cluster of librdkafka, and moto."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onthedot.brokers import link
from tests.services.brokers import BrokerServer
from tests.services.simulated import FromKafka, FromSqs, SimulatedServer, running_kafka, running_sqs
from tests.services.waiting import until
from tests.targets.sending import send
from tests.targets.test_queue_brokers import Party, confirmed, interrupted_while_it_connects

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def kafka() -> Iterator[SimulatedServer]:
    with running_kafka() as server:
        yield server


@pytest.fixture(scope="module")
def sqs() -> Iterator[BrokerServer]:
    with running_sqs() as server:
        yield server


async def test_kafka_confirms_and_another_client_reads(kafka: BrokerServer):
    party, reader = Party("kafka", kafka), FromKafka()
    async with party.kind() as kind:
        results = [
            confirmed(outcome)
            for outcome in await asyncio.gather(*(send(kind, party.call(number)) for number in range(50)))
        ]
        confirmed(await send(kind, party.call(50, party.target(key="k", headers={"colour": "red"}))))
    assert {result["topic"] for result in results} == {party.topic}
    assert len({(result["partition"], result["offset"]) for result in results}) == 50
    messages = {message.id: message for message in await reader.consume(kafka, party.topic)}
    assert set(messages) == {f"7-{number}" for number in range(51)}
    assert json.loads(messages["7-1"].body) == {"n": 1}
    assert messages["7-1"].headers["key"] == "7-1"
    assert (messages["7-50"].headers["key"], messages["7-50"].headers["colour"]) == ("k", "red")


async def test_who_is_interrupted_while_it_connects_to_kafka_leaves_nothing(kafka: BrokerServer):
    await interrupted_while_it_connects(Party("kafka", kafka))


async def test_a_kafka_that_refuses_for_a_while_has_each_message_in_the_end(kafka: SimulatedServer):
    """With too few replicas, or without an answer in time: its client sends them again."""
    party, reader = Party("kafka", kafka), FromKafka()
    async with party.kind() as kind:
        confirmed(await send(kind, party.call(0)))
        kafka.fail_some()
        for outcome in await asyncio.gather(*(send(kind, party.call(number)) for number in range(1, 31))):
            confirmed(outcome)
    assert {message.id for message in await reader.consume(kafka, party.topic)} == {f"7-{n}" for n in range(31)}


async def test_a_message_too_large_for_kafka_is_final(kafka: BrokerServer):
    party = Party("kafka", kafka)
    async with party.kind() as kind:
        failed = await send(kind, party.call(1, party.target(body="x" * 1_100_000)))
        assert (failed.kind, failed.retryable) == ("error", False)
        confirmed(await send(kind, party.call(2)))


async def test_a_frozen_kafka_fails_what_waits_and_is_found_again(kafka: BrokerServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(link, "STALLED", 0.0)
    monkeypatch.setattr(link, "CONNECT_WITHIN", 0.3)
    monkeypatch.setattr(link, "CLOSE_WITHIN", 0.3)
    party = Party("kafka", kafka)
    async with party.kind() as kind:
        with party.frozen():
            failed = await send(kind, party.call(1))
            assert (failed.kind, failed.retryable) == ("error", True)
            assert "did not respond" in (failed.error or "")
        monkeypatch.setattr(link, "CONNECT_WITHIN", 5.0)

        async def found_again() -> bool:
            return (await send(kind, party.call(2))).ok

        await until(found_again, "it is connected again")


async def test_nobody_there_is_a_failed_try(free_port: Callable[[], int]):
    for url in (f"kafka://127.0.0.1:{free_port()}", f"sqs://k:s@eu-west-1?endpoint=http://127.0.0.1:{free_port()}"):
        party = Party("it", BrokerServer([], Path(), 0, url, bool, {}))
        async with party.kind() as kind:
            failed = await send(kind, party.call())
        assert (failed.kind, failed.retryable) == ("error", True)
        (found,) = await party.kind().diagnose()
        assert found.advice is not None


async def test_sqs_confirms_and_another_client_reads(sqs: BrokerServer):
    party, reader = Party("sqs", sqs), FromSqs()
    await reader.prepare(sqs, party.topic)
    async with party.kind() as kind:
        results = [
            confirmed(outcome)
            for outcome in await asyncio.gather(*(send(kind, party.call(number)) for number in range(25)))
        ]
        (found,) = await party.kind().diagnose()
    assert found.advice is None
    assert len({result["message_id"] for result in results}) == 25
    messages = {message.id: message for message in await reader.consume(sqs, party.topic)}
    assert set(messages) == {f"7-{number}" for number in range(25)}
    assert json.loads(messages["7-3"].body) == {"n": 1}
    assert messages["7-3"].headers["content-type"] == "application/json"


async def test_one_that_times_out_while_sqs_is_slow_takes_no_other_with_it(
    sqs: BrokerServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(link, "STALLED", 0.0)
    party, reader = Party("sqs", sqs), FromSqs()
    await reader.prepare(sqs, party.topic)
    async with party.kind() as kind:
        confirmed(await send(kind, party.call(0)))
        with party.frozen():
            late, patient = [asyncio.create_task(send(kind, party.call(number))) for number in (1, 2)]
            await until(lambda: kind.waiting("it") == 2, "both are on their way")
            late.cancel()
            await asyncio.wait([late])
        confirmed(await patient)
    assert {message.id for message in await reader.consume(sqs, party.topic)} >= {"7-0", "7-2"}


async def test_a_fifo_queue_drops_a_repeat(sqs: BrokerServer):
    party, reader = Party("sqs", sqs), FromSqs()
    party.topic += ".fifo"
    await reader.prepare(sqs, party.topic)
    async with party.kind() as kind:
        first, second = [confirmed(await send(kind, party.call(5))) for _ in range(2)]
    assert "sequence_number" in first
    assert second["queue"] == party.topic
    (message,) = await reader.consume(sqs, party.topic)
    assert (message.id, message.headers["MessageDeduplicationId"]) == ("7-5", "7-5")
    assert message.headers["MessageGroupId"] == "7"


async def test_a_queue_that_does_not_exist_is_a_failed_try_until_it_does(sqs: BrokerServer):
    party = Party("sqs", sqs)
    async with party.kind() as kind:
        failed = await send(kind, party.call())
        assert (failed.kind, failed.retryable) == ("error", True)
        assert failed.error == f"broker it: queue {party.topic!r} not found"
        await FromSqs().prepare(sqs, party.topic)
        confirmed(await send(kind, party.call()))


async def test_a_message_too_large_for_sqs_is_final_and_harms_no_other(sqs: BrokerServer):
    party = Party("sqs", sqs)
    await FromSqs().prepare(sqs, party.topic)
    async with party.kind() as kind:
        large, small = await asyncio.gather(
            send(kind, party.call(1, party.target(body="x" * 1_100_000))), send(kind, party.call(2))
        )
    assert (large.kind, large.retryable) == ("error", False), large
    confirmed(small)


async def test_a_wrong_access_key_of_sqs_is_told_by_run_and_doctor():
    with running_sqs(closed=True) as server:
        party = Party("sqs", server)
        async with party.kind() as kind:
            failed = await send(kind, party.call())
        (found,) = await party.kind().diagnose()
    assert (failed.kind, failed.retryable) == ("error", True)
    for said in (failed.error or "", found.found):
        assert "security token" in said
        assert "secret" not in said
    assert found.advice is not None
