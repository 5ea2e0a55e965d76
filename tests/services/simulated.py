"""Brokers that are not to be had on a test machine, simulated by somebody else: Kafka by the mock cluster inside
librdkafka, SQS by moto. Each is a process of its own; what they hold is in memory, and gone with them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from confluent_kafka import Consumer, TopicPartition

from tests.services.brokers import BrokerServer
from tests.services.consumers import Consumed
from tests.services.orphan_reaper import orphan_reaper
from tests.services.ports import free_port
from tests.services.waiting import until_blocking

__all__ = ["FromKafka", "FromSqs", "running_kafka", "running_sqs"]

MOCK = """
import sys
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 3})
found = producer.list_topics(timeout=20).brokers.values()
print(",".join(f"{broker.host}:{broker.port}" for broker in found), flush=True)
sys.stdin.read()
"""


class SimulatedServer(BrokerServer):
    """It can be frozen, but not started again with what it had."""

    def __init__(self, process: subprocess.Popen[Any], port: int, url: str) -> None:
        super().__init__([], Path(), port, url, lambda port: True, {})
        self._process = process
        orphan_reaper.runs(-process.pid, signal.SIGKILL)


@contextmanager
def running_kafka() -> Iterator[SimulatedServer]:
    process = subprocess.Popen(
        [sys.executable, "-c", MOCK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    places = process.stdout.readline().decode().strip()
    server = SimulatedServer(process, int(places.rpartition(":")[2]), f"kafka://{places}")
    try:
        yield server
    finally:
        server.stop(kill=True)
        process.stdout.close()
        process.stdin.close()


@contextmanager
def running_sqs(*, closed: bool = False) -> Iterator[SimulatedServer]:
    """`closed`: to everybody, as if no access key were valid."""
    port = free_port()
    process = subprocess.Popen(
        [Path(sys.executable).with_name("moto_server"), "-H", "127.0.0.1", "-p", str(port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, **({"INITIAL_NO_AUTH_ACTION_COUNT": "0"} if closed else {})},
    )
    server = SimulatedServer(process, port, f"sqs://key:secret@eu-west-1?endpoint=http://127.0.0.1:{port}")
    try:
        until_blocking(lambda: _listens(port), "moto listens", 60)
        yield server
    finally:
        server.stop(kill=True)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class FromKafka:
    async def prepare(self, server: BrokerServer, topic: str) -> None:
        """The mock makes a topic when somebody asks for it."""

    async def consume(self, server: BrokerServer, topic: str) -> list[Consumed]:
        return await asyncio.to_thread(self._read, server, topic)

    def _read(self, server: BrokerServer, topic: str) -> list[Consumed]:
        places = server.url.removeprefix("kafka://")
        consumer = Consumer({"bootstrap.servers": places, "group.id": "reader", "enable.auto.commit": False})
        found = []
        try:
            for partition in consumer.list_topics(topic, timeout=10).topics[topic].partitions:
                low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
                consumer.assign([TopicPartition(topic, partition, low)])
                for _ in range(high - low):
                    record: Any = consumer.poll(10)
                    assert record is not None
                    assert record.error() is None, record.error()
                    headers = {name: value.decode() for name, value in record.headers() or ()}
                    headers["key"] = record.key().decode()
                    found.append(Consumed(headers.get("x-onthedot-run-id"), record.value(), headers))
        finally:
            consumer.close()
        return found


class FromSqs:
    def client(self, server: BrokerServer) -> Any:
        return boto3.client(
            "sqs",
            region_name="eu-west-1",
            endpoint_url=f"http://127.0.0.1:{server.port}",
            aws_access_key_id="reader",
            aws_secret_access_key="reader",
        )

    async def prepare(self, server: BrokerServer, topic: str) -> None:
        attributes = {"FifoQueue": "true"} if topic.endswith(".fifo") else {}

        def create() -> None:
            client = self.client(server)
            client.create_queue(QueueName=topic, Attributes=attributes)
            client.close()

        await asyncio.to_thread(create)

    async def consume(self, server: BrokerServer, topic: str) -> list[Consumed]:
        return await asyncio.to_thread(self._read, server, topic)

    def _read(self, server: BrokerServer, topic: str) -> list[Consumed]:
        client = self.client(server)
        url = client.get_queue_url(QueueName=topic)["QueueUrl"]
        found = []
        while messages := client.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
        ).get("Messages"):
            for message in messages:
                headers = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
                headers |= message["Attributes"]
                found.append(Consumed(headers.get("x-onthedot-run-id"), message["Body"].encode(), headers))
                client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        client.close()
        return found
