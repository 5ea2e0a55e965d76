"""Redis streams, by XREADGROUP. Group and stream are made when they are not there, from the first entry on.

Each connection is a consumer of its own. What one has taken is its own while `keep` says so; what nobody has kept for
LEFT seconds was left by a node that died, and is taken over (XAUTOCLAIM). Redis 6.2 or newer.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from onthedot.brokers.reader import ReadFailed, Received, Subscription, TopicMissing
from onthedot.brokers.redis import close_client, open_client
from onthedot.settings import BrokerAddress, BrokerSetting

__all__ = ["examine", "open_reader"]

WAIT_MS = 1000
LEFT = 20.0
LOOK_EVERY = 5.0
FORGOTTEN_MS = 3_600_000
"""A consumer that has nothing and has not been seen for so long is removed from the group."""
CONNECTIONS = 3


async def open_reader(setting: BrokerSetting, address: BrokerAddress, wanted: Subscription) -> RedisReader:
    client = await open_client(setting, address, connections=CONNECTIONS)
    try:
        await _check_type(client, wanted.topic)
        try:
            await client.xgroup_create(wanted.topic, wanted.group, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
    except BaseException:
        await close_client(client)
        raise
    return RedisReader(client, wanted)


async def examine(setting: BrokerSetting, address: BrokerAddress, wanted: Subscription, dead_letter: str) -> int | None:
    client = await open_client(setting, address, connections=1)
    try:
        await _check_type(client, wanted.topic)
        await _check_type(client, dead_letter)
        return await _lag(client, wanted)
    finally:
        await close_client(client)


async def _check_type(client: Redis, topic: str) -> None:
    kind: Any = await client.type(topic)
    if kind not in (b"stream", b"none"):
        raise TopicMissing(f"the key {topic!r} is a {kind.decode()}, not a stream")


async def _lag(client: Redis, wanted: Subscription) -> int | None:
    """Told by Redis 7 and newer."""
    try:
        groups: Any = await client.xinfo_groups(wanted.topic)
    except ResponseError:  # there is no stream yet
        return None
    return next((group.get("lag") for group in groups if group["name"] == wanted.group.encode()), None)


class RedisReader:
    def __init__(self, client: Redis, wanted: Subscription) -> None:
        self._client, self._wanted = client, wanted
        self._me = f"onthedot-{secrets.token_hex(6)}"
        self._held: dict[bytes, None] = {}
        self._looked = -LOOK_EVERY

    async def take(self, most: int) -> list[Received]:
        topic, group = self._wanted.topic, self._wanted.group
        try:
            if time.monotonic() - self._looked >= LOOK_EVERY:
                if left := await self._left_by_others(most):
                    return left
                self._looked = time.monotonic()
            answer: Any = await self._client.xreadgroup(group, self._me, {topic: ">"}, count=most, block=WAIT_MS)
        except (RedisError, OSError) as error:
            raise ReadFailed(_words(error)) from None
        return self._given(_entries(answer))

    async def _left_by_others(self, most: int) -> list[Received]:
        """By nodes that died. The oldest first, so that they come before what is new."""
        answer: Any = await self._client.xautoclaim(
            self._wanted.topic, self._wanted.group, self._me, int(LEFT * 1000), count=most
        )
        entries = [(entry, fields) for entry, fields in answer[1] if fields is not None and entry not in self._held]
        if not entries:
            await self._forget_consumers()
        return self._given(entries)

    async def _forget_consumers(self) -> None:
        consumers: Any = await self._client.xinfo_consumers(self._wanted.topic, self._wanted.group)
        for each in consumers:
            if each["pending"] == 0 and each["idle"] > FORGOTTEN_MS:
                await self._client.xgroup_delconsumer(self._wanted.topic, self._wanted.group, each["name"])

    def _given(self, entries: Sequence[tuple[bytes, dict[bytes, bytes]]]) -> list[Received]:
        self._held |= dict.fromkeys(entry for entry, _ in entries)
        return [_read(self._wanted.topic, entry, fields) for entry, fields in entries]

    async def settle(self, received: Sequence[Received]) -> None:
        if not received:
            return
        tags = [message.tag for message in received]
        try:
            await self._client.xack(self._wanted.topic, self._wanted.group, *tags)
        except (RedisError, OSError) as error:
            raise ReadFailed(_words(error)) from None
        for tag in tags:
            self._held.pop(tag, None)

    async def keep(self) -> None:
        if not self._held:
            return
        try:
            await self._client.xclaim(
                self._wanted.topic, self._wanted.group, self._me, 0, [*self._held], idle=0, justid=True
            )
        except (RedisError, OSError) as error:
            raise ReadFailed(_words(error)) from None

    async def lag(self) -> int | None:
        try:
            return await _lag(self._client, self._wanted)
        except (RedisError, OSError) as error:
            raise ReadFailed(_words(error)) from None

    async def close(self) -> None:
        """What is held is left in the group's list, where others find it: removing the consumer would lose it."""
        try:
            with suppress(RedisError, OSError):
                if not self._held:
                    await self._client.xgroup_delconsumer(self._wanted.topic, self._wanted.group, self._me)
        finally:
            await close_client(self._client)


def _entries(answer: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """Of the one stream, in the form of either protocol: a list of [name, entries], or {name: [entries]}."""
    if not answer:
        return []
    if isinstance(answer, dict):
        (portions,) = answer.values()
        return [entry for portion in portions for entry in portion]
    return list(answer[0][1])


def _read(topic: str, entry: bytes, fields: dict[bytes, bytes]) -> Received:
    """The message is in the field `body`; the others are its headers."""
    headers = {
        name.decode(errors="replace"): value.decode(errors="replace")
        for name, value in fields.items()
        if name != b"body"
    }
    return Received(
        body=fields.get(b"body", b""),
        tag=entry,
        id=headers.get("id"),
        place=f"{topic}/{entry.decode()}",
        key=headers.get("key"),
        headers=headers,
    )


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
