"""Brokers that are not to be had on a test machine, simulated by somebody else: Kafka by the mock cluster inside
librdkafka, SQS by moto. Each is a process of its own; what they hold is in memory, and gone with them. What is
restarted in their place is a relay, through which everybody comes to them: connections break with what is under way on
them, new ones are refused, and what was confirmed is still there afterwards."""

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

__all__ = ["FromKafka", "FromSqs", "SimulatedServer", "running_kafka", "running_sqs"]

MOCK = """
import ctypes, glob, os, sys
import confluent_kafka
folder = os.path.dirname(os.path.dirname(confluent_kafka.__file__))
(path,) = glob.glob(os.path.join(folder, "confluent_kafka.libs", "librdkafka*.so*"))
kafka = ctypes.CDLL(path)
for name in ("conf_new", "new", "mock_cluster_new", "mock_cluster_bootstraps"):
    getattr(kafka, "rd_kafka_" + name).restype = ctypes.c_void_p
why = ctypes.create_string_buffer(512)
handle = kafka.rd_kafka_new(0, ctypes.c_void_p(kafka.rd_kafka_conf_new()), why, ctypes.c_size_t(512))
assert handle, why.value
cluster = ctypes.c_void_p(kafka.rd_kafka_mock_cluster_new(ctypes.c_void_p(handle), 3))
bootstraps = kafka.rd_kafka_mock_cluster_bootstraps
bootstraps.restype = ctypes.c_char_p
print(bootstraps(cluster).decode(), flush=True)
for number, port in enumerate(sys.argv[1:], 1):  # what clients are told instead
    assert not kafka.rd_kafka_mock_broker_set_host_port(cluster, number, b"127.0.0.1", ctypes.c_int(int(port)))
PRODUCE, NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT = ctypes.c_int16(0), 19, 7
errors = (ctypes.c_int * 10)(*[NOT_ENOUGH_REPLICAS, REQUEST_TIMED_OUT] * 5)
for line in sys.stdin:
    kafka.rd_kafka_mock_push_request_errors_array(cluster, PRODUCE, ctypes.c_size_t(10), errors)
"""
RELAY = """
import asyncio, sys

async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()

async def main():
    for way in sys.argv[1:]:
        near, far = map(int, way.split(":"))
        async def joined(reader, writer, far=far):
            others = await asyncio.open_connection("127.0.0.1", far)
            await asyncio.gather(pump(reader, others[1]), pump(others[0], writer))
        await asyncio.start_server(joined, "127.0.0.1", near)
    await asyncio.Event().wait()

asyncio.run(main())
"""


class SimulatedServer(BrokerServer):
    """It can be frozen, but not started again with what it had: what is stopped and started is the relay in front of
    it, where there is one."""

    def __init__(
        self, process: subprocess.Popen[Any], port: int, url: str, relays: dict[int, int] | None = None
    ) -> None:
        ways = [f"{near}:{far}" for near, far in (relays or {}).items()]
        super().__init__([sys.executable, "-c", RELAY, *ways], Path("/"), port, url, _listens, {})
        self._simulation, self._has_relay = process, bool(relays)
        self.behind = (relays or {}).get(port, port)  # past the relay
        if self._has_relay:
            self.start()
        else:
            self._process = process
        orphan_reaper.runs(-process.pid, signal.SIGKILL)

    def restart(self, *, kill: bool = False) -> None:
        if self._simulation.stdin is not None:
            self.fail_some()
        super().restart(kill=kill)

    def fail_some(self) -> None:
        """Kafka fails the next ten requests to publish, as it does after a restart."""
        assert self._simulation.stdin is not None
        self._simulation.stdin.write(b"errors\n")
        self._simulation.stdin.flush()

    def end(self) -> None:
        self.stop(kill=True)
        if self._has_relay:
            os.killpg(self._simulation.pid, signal.SIGKILL)
        self._simulation.wait()
        orphan_reaper.ended(-self._simulation.pid)


@contextmanager
def running_kafka(*, relayed: bool = False) -> Iterator[SimulatedServer]:
    nears = [free_port() for _ in range(3)] if relayed else []
    process = subprocess.Popen(
        [sys.executable, "-c", MOCK, *map(str, nears)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    fars = [int(place.rpartition(":")[2]) for place in process.stdout.readline().decode().strip().split(",")]
    ports = nears or fars
    places = ",".join(f"127.0.0.1:{port}" for port in ports)
    server = SimulatedServer(process, ports[-1], f"kafka://{places}", dict(zip(nears, fars, strict=False)))
    try:
        yield server
    finally:
        server.end()
        process.stdout.close()
        process.stdin.close()


@contextmanager
def running_sqs(*, closed: bool = False, relayed: bool = False) -> Iterator[SimulatedServer]:
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
    near = free_port() if relayed else port
    url = f"sqs://key:secret@eu-west-1?endpoint=http://127.0.0.1:{near}"
    server = SimulatedServer(process, near, url, {near: port} if relayed else None)
    try:
        until_blocking(lambda: _listens(port), "moto listens", 60)
        yield server
    finally:
        server.end()


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
            endpoint_url=f"http://127.0.0.1:{server.behind if isinstance(server, SimulatedServer) else server.port}",
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
