"""Faults that need more than one thing done to one process: an API frozen under its clients, a node with hardly any
descriptors, a clock that jumps there and back, a database that is replaced by its standby."""

from __future__ import annotations

import asyncio
import random

from proof.chaos.clock import TrueTime
from proof.chaos.database import Database
from proof.chaos.failover import Pair
from proof.chaos.nodes import NodeProcess
from proof.chaos.wire import Helper

__all__ = ["LEASE", "MoreFaults"]

LEASE = 5.0
FEW_FILES = (48, 64, 96)
"""Descriptors. A node alone has about thirty: its connections to the database, its own pipes and files."""


class MoreFaults:
    """What a Nemesis can do, beside what is in its own module."""

    _apis: list[NodeProcess]
    _executors: list[NodeProcess]
    _double: NodeProcess
    _database: Database
    _proxy: Helper
    _time: TrueTime
    _rng: random.Random

    def _pick(self, nodes: list[NodeProcess]) -> NodeProcess | None:
        raise NotImplementedError

    def _note(
        self, began: int, what: str, *, pid: int | None = None, name: str = "", detail: str = "", count: int = 0
    ) -> None:
        raise NotImplementedError

    async def _rest(self, least: float, most: float) -> None:
        raise NotImplementedError

    async def _end(self, node: NodeProcess, what: str) -> None:
        raise NotImplementedError

    async def _registered(self, pid: int) -> None:
        raise NotImplementedError

    async def _freeze_api(self) -> None:
        """Its clients give up meanwhile, and do the same, or the contrary, elsewhere."""
        if (node := self._pick(self._apis)) is None:
            return
        node.busy, began = True, self._time.now
        node.freeze()
        await asyncio.sleep(LEASE * self._rng.choice((self._rng.uniform(0.1, 1), self._rng.uniform(1.3, 4))))
        node.thaw()
        self._note(began, "freeze", pid=node.pid, name=node.name, detail="api")
        node.busy = False

    async def _few_files(self) -> None:
        """One more node, with so few descriptors that it can't have a connection for each call."""
        node = self._double
        if node.busy:
            return
        node.busy = True
        node.files = self._rng.choice(FEW_FILES)
        await node.start()
        began, pid, files = self._time.now, node.pid, node.files
        await self._registered(pid)
        await self._rest(LEASE, 2 * LEASE)
        node.terminate()
        await self._end(node, "few_files")
        self._note(began, "few_files", pid=pid, name=node.name, detail=f"{files} descriptors")
        node.files, node.busy = None, False

    async def _clock_there_and_back(self) -> None:
        if (node := self._pick([*self._executors, *self._apis])) is None:
            return
        by = self._rng.choice((-1, 1)) * self._rng.choice((self._rng.randint(500, 20_000), 3_600_000, 86_400_000))
        began, before = self._time.now, node.clock_ms
        node.busy = True
        node.set_clock(before + by)
        await self._rest(0.5, LEASE)
        node.set_clock(before)
        self._note(began, "node_clock", pid=node.pid, name=node.name, detail=f"{by / 1000:+.1f} s and back")
        node.busy = False

    async def _failover(self) -> None:
        """The database is away until its standby has taken over; then that gets a standby of its own."""
        pair = self._database
        if not isinstance(pair, Pair) or pair.lock.locked():
            return
        async with pair.lock:
            began = self._time.now
            await pair.fail_over(self._proxy)
            what = "outage" if self._time.now - began >= LEASE * 1000 else "short_outage"
            self._note(began, what, detail=f"failover to {'a synchronous' if pair.sync else 'an asynchronous'} standby")
            await pair.pair_up()
