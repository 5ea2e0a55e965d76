"""Three ways in which a primary goes away, each later a standby again; and a probe that says when it can be written."""

from __future__ import annotations

import asyncio
import time
import urllib.error
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Literal

import asyncpg

from bench.soak.away import AWAY
from bench.soak.failovers import Fault
from bench.soak.patroni import Member, Pair

__all__ = ["FAULTS", "Probe", "What", "inflict", "probing", "starts"]

What = Literal["switchover", "postmaster killed", "Patroni and postmaster killed"]
FAULTS: tuple[What, ...] = ("switchover", "postmaster killed", "Patroni and postmaster killed")
SHARES = (0.12, 0.26, 0.4)
"""When each begins, as a share of the soak: what they leave behind shows in the second half, which is undisturbed."""
EVERY = 0.1
AGAIN_AFTER = 2.0
DEAD_FOR = 5.0
"""Seconds after the next primary is there until a dead member is started again."""
_PREPARE = "CREATE TABLE IF NOT EXISTS probe (n int); INSERT INTO probe VALUES (0)"
_WRITE = "UPDATE probe SET n = n + 1 RETURNING pg_postmaster_start_time()::text"


def starts(seconds: int) -> list[float]:
    return [seconds * share for share in SHARES]


@dataclass(frozen=True)
class Confirmed:
    """A write that was acknowledged. Who started a second time is another one."""

    at: float
    member: str
    born: str


class Probe:
    """Writes ten times a second to whichever can be written."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._connection: asyncpg.Connection | None = None
        self._member: Member | None = None
        self._heard = asyncio.Condition()
        self._failed: Exception | None = None
        self.last: Confirmed | None = None

    async def run(self) -> None:
        """Until it is cancelled. Who waits for a write is told if it can't go on."""
        try:
            await self._go_on()
        except Exception as error:
            async with self._heard:
                self._failed = error
                self._heard.notify_all()
            raise

    async def _go_on(self) -> None:
        while True:
            began = time.monotonic()
            with suppress(*AWAY):
                await self._write()
            await asyncio.sleep(max(0.0, EVERY - (time.monotonic() - began)))

    async def written(self, wanted: Callable[[Confirmed], bool], within: float) -> Confirmed:
        async with self._heard:
            async with asyncio.timeout(within):
                await self._heard.wait_for(
                    lambda: self._failed is not None or (self.last is not None and wanted(self.last))
                )
            if self._failed is not None or self.last is None:
                raise RuntimeError("the probe of the database ended") from self._failed
            return self.last

    async def _write(self) -> None:
        try:
            if self._connection is None:
                await self._connect()
            if self._connection is None or self._member is None:
                return
            born = await self._connection.fetchval(_WRITE, timeout=2.0)
        except AWAY:
            self._drop()
            raise
        async with self._heard:
            self.last = Confirmed(time.time(), self._member.name, born)
            self._heard.notify_all()

    async def _connect(self) -> None:
        for member in self._pair.members:
            with suppress(*AWAY):
                connection = await member.connect("postgres", timeout=1.0)
                if not await connection.fetchval("SELECT pg_is_in_recovery()"):
                    await connection.execute("SET lock_timeout = '1s'")
                    self._connection, self._member = connection, member
                    return
                connection.terminate()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
        self._connection = None


@asynccontextmanager
async def probing(pair: Pair) -> AsyncIterator[Probe]:
    connection = await (await pair.primary()).connect("postgres")
    await connection.execute(_PREPARE)
    await connection.close()
    probe = Probe(pair)
    running = asyncio.ensure_future(probe.run())
    try:
        yield probe
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def inflict(what: What, pair: Pair, probe: Probe, patience: float = 120.0) -> Fault:
    """Do it, wait for the next primary, and until there is a pair again."""
    await pair.paired()
    primary = await pair.primary()
    before = await probe.written(lambda write: write.member == primary.name, patience)
    last = before

    def another(write: Confirmed) -> bool:
        nonlocal last
        if (write.member, write.born) == (before.member, before.born):
            last = write
            return False
        return True

    if what == "switchover":
        asking = asyncio.ensure_future(_switch_over(primary, pair.other(primary)))
        try:
            after, gone = await probe.written(another, patience), last.at
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
    else:
        gone = time.time()
        if what == "Patroni and postmaster killed":
            primary.kill_patroni()
        primary.kill_postmaster()
        after = await probe.written(another, patience)
        if primary.process is None:
            await asyncio.sleep(DEAD_FOR)
            primary.start()
    return Fault(what, before.member, after.member, gone, after.at, await pair.paired())


async def _switch_over(primary: Member, candidate: Member) -> None:
    """Patroni refuses, or gives up, when the machine is so busy that the standby is not up to date: ask again."""
    while True:
        try:
            await asyncio.to_thread(primary.ask, "/switchover", {"leader": primary.name, "candidate": candidate.name})
        except urllib.error.HTTPError:
            await asyncio.sleep(AGAIN_AFTER)
        else:
            return
