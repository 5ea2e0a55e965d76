"""Nodes on one real store (SQLite in memory, on the loop), all on one fake clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar, cast

from onthedot.channels.channel import Channel
from onthedot.clock import FakeClock
from onthedot.engine import EngineSettings, Node
from onthedot.errors import OnTheDotError, StoreUnavailable
from onthedot.model.job import JobSpec, JobView
from onthedot.model.run import RunView
from onthedot.store import NewJob, RunFilter, Store, open_store
from tests.engine.making import FakeSender
from tests.engine.test_run_log import inline

T = TypeVar("T")


class Trouble:
    """The way from one node to the store. `away`: nothing goes through. `lose`: done, but the answer is lost.
    Frozen: calls hang until the thaw, and are made then."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.away = False
        self.lose: set[str] = set()
        self._thawed = asyncio.Event()
        self._thawed.set()
        self.asked: list[str] = []

    def freeze(self) -> None:
        self._thawed.clear()

    def thaw(self) -> None:
        self._thawed.set()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not asyncio.iscoroutinefunction(method):
            return method

        async def through(*args: Any, **kwargs: Any) -> Any:
            self.asked.append(name)
            await self._thawed.wait()
            if self.away:
                raise StoreUnavailable("cut off")
            answer = await method(*args, **kwargs)
            if name in self.lose:
                self.lose.discard(name)
                raise StoreUnavailable("the answer was lost")
            return answer

        return through


class Member:
    """One node with its own way to the store and its own receiver."""

    def __init__(
        self, cluster: Cluster, seed: int, sender: Any, settings: EngineSettings, channels: Mapping[str, Channel]
    ) -> None:
        self.way = Trouble(cluster.store)
        self.sender = sender
        self.killed = False
        self.node = Node(
            store=cast("Store", self.way),
            targets=sender.targets,
            clock=cluster.clock,
            rng=random.Random(seed),
            settings=settings,
            offload=inline,
            channels=channels,
        )

    @property
    def id(self) -> str:
        assert self.node.info is not None
        return self.node.info.id

    def kill(self) -> None:
        """kill -9: its loops end, nothing is written, nobody is told."""
        assert self.node._main is not None
        self.killed = True
        self.way.away = True
        self.node._main.cancel()


class Cluster:
    def __init__(self, clock: FakeClock, store: Store) -> None:
        self.clock = clock
        self.store = store
        self.members: list[Member] = []
        self.start = clock.now_ms()

    @classmethod
    async def open(cls, clock: FakeClock) -> Cluster:
        return cls(clock, await open_store("sqlite:///:memory:", clock, threads=False))

    async def close(self) -> None:
        for member in self.members:
            member.way.thaw()
            member.way.away = False
            await self.finish(member.node.stop(at_once=True))
        await self.store.close()

    async def node(
        self,
        *capabilities: str,
        away: bool = False,
        lose: Iterable[str] = (),
        sender: Any = None,
        processes: int = 4,
        channels: Mapping[str, Channel] = MappingProxyType({}),
        **settings: Any,
    ) -> Member:
        receiver = sender or FakeSender(*capabilities, now=self.clock.now_ms, processes=processes)
        member = Member(self, len(self.members) + 1, receiver, EngineSettings(**settings), channels)
        member.way.away = away
        member.way.lose = set(lose)
        self.members.append(member)
        await member.node.__aenter__()
        await self.clock.settle()
        return member

    async def finish(self, what: Awaitable[T], most: float = 60.0) -> T:
        """Turn the clock until it is through."""
        task = asyncio.ensure_future(what)
        await self.clock.settle()
        end = self.clock.monotonic() + most
        while not task.done():
            assert self.clock.monotonic() < end, "did not end"
            await self.clock.advance(0.05)
        return await task

    async def until(self, condition: Any, most: float = 60.0) -> float:
        """Turn the clock until it is so; returns how long that took."""
        began = self.clock.monotonic()
        while not condition():
            assert self.clock.monotonic() < began + most, "never happened"
            await self.clock.advance(0.05)
        return self.clock.monotonic() - began

    async def create(self, spec: JobSpec) -> JobView:
        (made,) = await self.store.create_jobs([NewJob(tenant=1, spec=spec)])
        assert not isinstance(made, OnTheDotError), made
        await self.store.notify("due")
        await self.clock.settle()
        return made

    async def runs(self, job_id: int | None = None) -> list[RunView]:
        """All that is in the ledger or runs, oldest first."""
        page = await self.store.list_runs(1, RunFilter(job_id=job_id, limit=500))
        return list(reversed(page.items))

    async def run(self, job_id: int) -> RunView:
        (run,) = await self.runs(job_id)
        return run
