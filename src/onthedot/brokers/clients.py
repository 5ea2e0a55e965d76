"""Which brokers there are: the library that each needs, and what it takes as a topic. Loads no library by itself."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from typing import cast

import msgspec

from onthedot.brokers.publisher import Open
from onthedot.brokers.reader import Examine, OpenReader

__all__ = ["CLIENTS", "BrokerClient"]


class BrokerClient(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    extra: str  # of our own distribution; also the module beside this one
    library: str  # what it imports
    topic: str  # a regular expression
    accepted: str
    longest: int = 1000  # of a topic, in bytes
    celery: bool = False
    most_headers: int | None = None
    fields: tuple[str, ...] = ()  # of its messages: no names for headers, which have a place or a meaning of their own
    header: str = ".+"  # a regular expression for the names of headers, beside what all brokers take
    accepted_header: str = ""

    @property
    def installed(self) -> bool:
        return find_spec(self.library) is not None

    @property
    def install(self) -> str:
        return f"pip install 'onthedot[{self.extra}]'"

    def open(self) -> Open:
        return cast("Open", import_module(f"onthedot.brokers.{self.extra}").connect)

    def takes(self, topic: str) -> bool:
        return len(topic.encode()) <= self.longest and re.fullmatch(self.topic, topic) is not None

    def takes_header(self, name: str) -> bool:
        return re.fullmatch(self.header, name) is not None

    def reader(self) -> OpenReader:
        return cast("OpenReader", import_module(f"onthedot.brokers.readers.{self.extra}").open_reader)

    def examine(self) -> Examine:
        return cast("Examine", import_module(f"onthedot.brokers.readers.{self.extra}").examine)


CLIENTS = {
    client.extra: client
    for client in (
        BrokerClient(
            title="NATS",
            extra="nats",
            library="nats",
            topic=r"(?!\$)[^\s*>.\x00-\x1f\x7f]+(\.[^\s*>.\x00-\x1f\x7f]+)*",
            accepted="a subject such as orders.new, without spaces and wildcards, and not beginning with $",
        ),
        BrokerClient(
            title="Redis",
            extra="redis",
            library="redis",
            topic=r"[^\x00-\x1f\x7f]{1,500}",
            accepted="the key of a stream, up to 500 characters",
            celery=True,
            fields=("id", "key", "body"),
        ),
        BrokerClient(
            title="RabbitMQ",
            extra="rabbitmq",
            library="aiormq",
            topic=r"(?!amq\.)[^\x00-\x1f\x7f]+",
            longest=255,
            accepted="the name of a queue, or a routing key if the broker's url has an exchange; up to 255 bytes",
            celery=True,
            fields=("CC", "BCC"),
        ),
        BrokerClient(
            title="Kafka",
            extra="kafka",
            library="aiokafka",
            topic=r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}",
            accepted="the name of a topic: up to 249 letters, digits, ., _ and -",
        ),
        BrokerClient(
            title="SQS",
            extra="sqs",
            library="aiobotocore",
            topic=r"[A-Za-z0-9_-]{1,80}|(?=.{1,80}$)[A-Za-z0-9_-]+\.fifo",
            accepted="the name of a queue: up to 80 letters, digits, _ and -; a FIFO queue ends with .fifo",
            celery=True,
            most_headers=4,
            header=r"(?i:(?!aws\.|amazon\.|.*\.\.).*[^.])",
            accepted_header="no name that begins with AWS. or Amazon., ends with a period, or contains two in a row",
        ),
    )
}
