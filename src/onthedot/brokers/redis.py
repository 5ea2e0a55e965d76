"""Redis streams: XADD, confirmed by the id of the entry. A Celery task goes to a list, where Celery looks for it.

Messages that come while others are on their way go together, in one pipeline. The library does not repeat commands; it
only makes a new connection, before it sends, in place of one that the server has closed.
"""

from __future__ import annotations

import asyncio
from typing import Any

from redis import exceptions as failures
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError, ReadOnlyError, RedisError, ResponseError

from onthedot.brokers.batches import Batches
from onthedot.brokers.message import Message, kombu_envelope
from onthedot.brokers.publisher import (
    BrokerAway,
    BrokerRefused,
    Confirmed,
    OnLost,
    PublishFailed,
)
from onthedot.settings import BrokerAddress, BrokerSetting

__all__ = ["close_client", "connect", "open_client"]

MOST = 500
ANSWERS_WITHIN = 10.0
CLOSED_WITHIN = 0.5
_FINAL = ("WRONGTYPE", "NOPERM", "Protocol error", "invalid")


async def open_client(setting: BrokerSetting, address: BrokerAddress, *, connections: int) -> Redis:
    ((host, port),) = address.hosts
    tls: dict[str, Any] = {"ssl": True, "ssl_ca_certs": setting.ca} if address.tls else {}
    if setting.cert is not None:
        tls |= {"ssl_certfile": setting.cert, "ssl_keyfile": setting.key}
    client: Redis = Redis(
        host=host,
        port=port,
        db=int(address.path or 0),
        username=address.user or None,
        password=address.password,
        socket_connect_timeout=5,
        socket_timeout=ANSWERS_WITHIN,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),
        max_connections=connections,
        **tls,
    )
    try:
        await client.ping()
    except BaseException:
        await close_client(client)
        raise
    return client


async def close_client(client: Redis) -> None:
    """Also if who closes it is cancelled: the library would leave the sockets open that it had not come to."""
    closing = asyncio.ensure_future(client.aclose())
    try:
        await asyncio.shield(closing)
    except asyncio.CancelledError:
        await asyncio.wait({closing}, timeout=CLOSED_WITHIN)
        raise


async def connect(setting: BrokerSetting, address: BrokerAddress, lost: OnLost) -> RedisPublisher:
    return RedisPublisher(await open_client(setting, address, connections=1), address, lost)


class RedisPublisher:
    is_one_connection = True

    def __init__(self, client: Redis, address: BrokerAddress, lost: OnLost) -> None:
        self._client, self._lost = client, lost
        self._most_entries = int(address.options["maxlen"]) if "maxlen" in address.options else None
        self._batches = Batches(self._send, most=MOST)
        self._ended: str | None = None

    async def publish(self, message: Message) -> Confirmed:
        return await self._batches.confirmed(message)

    async def _send(self, messages: list[Message]) -> list[Confirmed | PublishFailed]:
        if self._ended is not None:  # the library would connect again
            raise BrokerAway(self._ended)
        pipeline = self._client.pipeline(transaction=False)
        for message in messages:
            if message.task is not None:
                pipeline.lpush(message.topic, kombu_envelope(message))
            else:
                pipeline.xadd(message.topic, _entry(message), maxlen=self._most_entries, approximate=True)
        try:
            answers = await pipeline.execute(raise_on_error=False)
        except (failures.ConnectionError, failures.TimeoutError, OSError) as error:
            why = str(error) or type(error).__name__
            self._end(why)
            raise PublishFailed(f"the connection was lost before confirmation: {why}") from None
        return [self._read(message, answer) for message, answer in zip(messages, answers, strict=True)]

    def _read(self, message: Message, answer: Any) -> Confirmed | PublishFailed:
        match answer:
            case ReadOnlyError():
                self._end(str(answer))  # another one has become the primary: the name may lead there by now
                return PublishFailed(str(answer))
            case NoPermissionError():
                return BrokerRefused(str(answer))
            case ResponseError() if str(answer).startswith(_FINAL):
                return BrokerRefused(str(answer))
            case RedisError() | OSError():
                return PublishFailed(str(answer))
        if message.task is not None:
            return {"list": message.topic, "length": int(answer)}
        return {"stream": message.topic, "id": answer.decode() if isinstance(answer, bytes) else str(answer)}

    def _end(self, why: str) -> None:
        self._ended = why
        self._lost(why)

    async def close(self) -> None:
        try:
            await self._batches.close()
        finally:
            await close_client(self._client)


def _entry(message: Message) -> dict[Any, Any]:
    entry: dict[Any, Any] = {"id": message.id, "content-type": message.content_type, **message.headers}
    entry["id"] = message.id  # a job from before such headers were refused may have one of this name
    if message.key is not None:
        entry["key"] = message.key
    return entry | {"body": message.body}
