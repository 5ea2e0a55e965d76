"""Hints over NOTIFY: sent after the commit in a transaction of their own, at most one per topic per 50 ms.

In the commit path NOTIFY cost 32 writers 71 % of their rate: it takes a lock for the whole database. Here a node sends
at most 20 per second and topic, and nobody waits for it. A hint may be lost; polling finds what it would have told.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import asyncpg

from onthedot.clock import SystemClock
from onthedot.store.driver import HINTS

__all__ = ["CHANNEL", "HintListener", "Notifier"]

CHANNEL = "onthedot"
GAP = 0.05


class Notifier:
    """Coalesces: the first hint goes at once, those within the next 50 ms become one."""

    def __init__(self, send: Callable[[str], Awaitable[None]]) -> None:
        self._send = send
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()

    def notify(self, topic: str) -> None:
        if topic in self._busy:
            self._again.add(topic)
        else:
            self._busy[topic] = asyncio.ensure_future(self._loop(topic))

    async def _loop(self, topic: str) -> None:
        try:
            while True:
                self._again.discard(topic)
                await self._send(topic)
                await SystemClock().sleep(GAP)
                if topic not in self._again:
                    return
        finally:
            del self._busy[topic]

    async def close(self) -> None:
        tasks = list(self._busy.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class HintListener:
    """One connection that LISTENs and connects again by itself, for ever; each time every topic is hinted once."""

    def __init__(self, connect: Callable[[], Awaitable[asyncpg.Connection]], callback: Callable[[str], None]) -> None:
        self._connect = connect
        self._callback = callback
        self._task = asyncio.ensure_future(self._run())
        self.connected = asyncio.Event()

    async def _run(self) -> None:
        pause = 0.1
        while True:
            try:
                connection = await self._connect()
            except Exception:  # away, refused, over the limit: all the same to a hint
                await SystemClock().sleep(pause * random.uniform(0.5, 1.5))
                pause = min(pause * 2, 5.0)
                continue
            pause = 0.1
            try:
                await self._hear(connection)
            except Exception:  # it broke between connecting and listening
                await SystemClock().sleep(pause)
            finally:
                self.connected.clear()
                connection.terminate()

    async def _hear(self, connection: asyncpg.Connection) -> None:
        ended = asyncio.Event()
        connection.add_termination_listener(lambda *_: ended.set())
        await connection.add_listener(CHANNEL, lambda _connection, _pid, _channel, topic: self._callback(str(topic)))
        self.connected.set()
        for topic in HINTS:
            self._callback(topic)
        await ended.wait()

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
