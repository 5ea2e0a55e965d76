"""NATS JetStream. A message is confirmed by the stream that has its subject; without a stream, nobody confirms it.

Publishes go out as they come, each with an inbox of its own below one subscription, so that thousands can wait for
their confirmations. The library does not connect again by itself: it would send what it had buffered, late and unasked.
"""

from __future__ import annotations

import asyncio
import itertools
from contextlib import suppress
from typing import Any, Protocol

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error, NoServersError

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

__all__ = ["connect", "open_client", "words"]

PING_EVERY, UNANSWERED_PINGS = 5, 2
CLOSE_WITHIN = 0.5
TOO_LARGE = 10054  # JSStreamMessageExceedsMaximumErr
NO_RESPONDERS = "503"


class _JetStreamProblem(msgspec.Struct):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _PubAck(msgspec.Struct, omit_defaults=True):
    stream: str = ""
    seq: int = 0
    duplicate: bool = False
    domain: str | None = None
    error: _JetStreamProblem | None = None


_read_ack = msgspec.json.Decoder(_PubAck).decode


class ConnectionEvents(Protocol):
    """Who hears what becomes of a connection. `why`: the last error."""

    why: str | None

    async def told(self, error: Exception) -> None: ...

    async def ended(self) -> None: ...


async def connect(setting: BrokerSetting, address: BrokerAddress, lost: OnLost) -> NatsPublisher:
    publisher = NatsPublisher(lost)
    publisher.client = await open_client(setting, address, publisher)
    try:
        await publisher.listen()
    except BaseException:
        await publisher.close()
        raise
    return publisher


async def open_client(setting: BrokerSetting, address: BrokerAddress, events: ConnectionEvents) -> Client:
    """To the first of the hosts that answers."""
    problems: list[Exception] = []
    for host, port in address.hosts:
        try:
            return await _connect_to(
                f"{host}:{port}" if ":" not in host else f"[{host}]:{port}", setting, address, events
            )
        except (OSError, TimeoutError, Error, BrokerAway) as error:
            problems.append(error)
    raise BrokerAway("; ".join(words(error) for error in problems))


async def _connect_to(place: str, setting: BrokerSetting, address: BrokerAddress, events: ConnectionEvents) -> Client:
    client = Client()
    login: dict[str, Any] = {}
    if address.password is not None:
        login = {"user": address.user, "password": address.password}
    elif address.user:
        login = {"token": address.user}
    context = await tls_context(setting, address)
    if context is not None:
        login |= {"tls": context, "tls_hostname": place.rpartition(":")[0].strip("[]")}
    try:
        await client.connect(
            f"{'tls' if address.tls else 'nats'}://{place}",
            name="onthedot",
            allow_reconnect=False,
            reconnect_time_wait=0,
            max_reconnect_attempts=1,  # of the first connection: without a bound it would try for ever
            connect_timeout=5,
            ping_interval=PING_EVERY,
            max_outstanding_pings=UNANSWERED_PINGS,
            error_cb=events.told,
            closed_cb=events.ended,
            **login,
        )
        await client.flush()  # the login was accepted
    except BaseException as error:
        with suppress(Exception):
            async with asyncio.timeout(CLOSE_WITHIN):  # after a failed TLS handshake it would wait for ever
                await client.close()
        if isinstance(error, NoServersError):
            raise BrokerAway(events.why or words(error)) from None
        raise
    return client


class NatsPublisher:
    is_one_connection = True

    def __init__(self, lost: OnLost) -> None:
        self.client, self._lost = Client(), lost
        self._waiting: dict[str, tuple[str, asyncio.Future[Confirmed]]] = {}
        self._numbers = itertools.count()
        self._inbox = ""
        self.why: str | None = None
        self._closing = False

    async def listen(self) -> None:
        self._inbox = self.client.new_inbox() + "."
        await self.client.subscribe(f"{self._inbox}*", cb=self._answered)
        await self.client.flush()

    async def publish(self, message: Message) -> Confirmed:
        headers = {"content-type": message.content_type, **message.headers, "Nats-Msg-Id": message.id}
        if message.key is not None:
            headers["x-onthedot-key"] = message.key
        token = str(next(self._numbers))
        confirmed: asyncio.Future[Confirmed] = asyncio.get_running_loop().create_future()
        self._waiting[token] = message.topic, confirmed
        try:
            if not self.client.is_connected:
                raise BrokerAway(self.why or "not connected")
            # The server would close the connection, and fail all that waits on it; the library forgets the headers.
            size = len(message.body) + len("NATS/1.0\r\n\r\n") + sum(map(_header_size, headers.items()))
            if size > self.client.max_payload:
                most = self.client.max_payload
                raise BrokerRefused(
                    f"the message has {size:,} bytes with its headers; the server accepts at most {most:,}"
                )
            try:
                await self.client.publish(message.topic, message.body, reply=self._inbox + token, headers=headers)
            except Error as error:
                raise PublishFailed(words(error)) from None
            return await confirmed
        finally:
            del self._waiting[token]

    async def _answered(self, answer: Msg) -> None:
        waiting = self._waiting.get(answer.subject.rpartition(".")[2])
        if waiting is None or waiting[1].done():
            return
        subject, confirmed = waiting
        if answer.headers and answer.headers.get("Status") == NO_RESPONDERS:
            confirmed.set_exception(NobodyTakesIt(f"no JetStream stream has the subject {subject!r}"))
            return
        try:
            ack = _read_ack(answer.data)
        except msgspec.MsgspecError:
            confirmed.set_exception(NobodyTakesIt(f"the response on subject {subject!r} did not come from JetStream"))
            return
        if ack.error is not None:
            failed = BrokerRefused if ack.error.err_code == TOO_LARGE else NobodyTakesIt
            confirmed.set_exception(failed(f"{ack.error.description} ({ack.error.err_code})"))
        elif not ack.stream:
            confirmed.set_exception(NobodyTakesIt(f"the response on subject {subject!r} did not come from JetStream"))
        else:
            confirmed.set_result(msgspec.to_builtins(ack))

    async def told(self, error: Exception) -> None:
        """An error of the connection, or of one message: the server only names its subject."""
        text = words(error)
        if "permissions violation for publish" in text.lower():
            for subject, confirmed in self._waiting.values():
                if f'"{subject.lower()}"' in text.lower() and not confirmed.done():
                    confirmed.set_exception(BrokerRefused(text))
            return
        self.why = text

    async def ended(self) -> None:
        why = self.why or words(self.client.last_error) if self.client.last_error else "the connection was closed"
        for _, confirmed in self._waiting.values():
            if not confirmed.done():
                confirmed.set_exception(PublishFailed(f"the connection was lost before confirmation: {why}"))
        if not self._closing:
            self._lost(why)

    async def close(self) -> None:
        self._closing = True
        await self.client.close()


def _header_size(header: tuple[str, str]) -> int:
    name, value = header
    return len(name) + len(value.encode()) + len(": \r\n")


def words(error: Exception) -> str:
    return str(error) or type(error).__name__
