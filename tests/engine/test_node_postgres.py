"""Real nodes on a real PostgreSQL and real clocks: on the dot, by hint, and taken over."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from onthedot.clock import SystemClock
from onthedot.engine import EngineSettings, Node
from onthedot.model.duration import Duration
from onthedot.model.run import Outcome
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from onthedot.store import NewJob, RunFilter, Store, open_store
from onthedot.targets import Call, Targets, from_coroutine
from tests.engine.making import OK, spec
from tests.services.waiting import until


class Receiver:
    """Notes each call with the database's time of its arrival, and tells who waits for it."""

    def __init__(self, store: Store) -> None:
        self.targets = Targets([from_coroutine(self.send, spec=WebhookTarget, capabilities=lambda: ["webhook"])])
        self.store = store
        self.arrived: list[tuple[str, int, int]] = []  # run, slot, when
        self.hangs = False
        self._more = asyncio.Event()

    async def send(self, call: Call) -> Outcome:
        self.arrived.append((call.run_id, call.slot, await self.store.now()))
        self._more.set()
        if self.hangs:
            await asyncio.Event().wait()
        return OK

    async def wait_for(self, count: int, seconds: float = 20.0) -> None:
        async with asyncio.timeout(seconds):
            while len(self.arrived) < count:
                self._more.clear()
                await self._more.wait()


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[Store]:
    store = await open_store(postgres_url)
    yield store
    await store.close()


@asynccontextmanager
async def running(store: Store, receiver: Receiver, seed: int = 1, **settings: int) -> AsyncIterator[Node]:
    chosen = EngineSettings(**settings)  # type: ignore[arg-type]  # only whole numbers are set here
    async with Node(
        store=store, targets=receiver.targets, clock=SystemClock(), rng=random.Random(seed), settings=chosen
    ) as node:
        await until(lambda: node.ready)
        yield node


async def create(store: Store, count: int, ms: int) -> None:
    one = NewJob(tenant=1, spec=spec(schedule=Schedule(in_=Duration(ms)), timeout=Duration(60_000)))
    assert len(await store.create_jobs([one] * count)) == count
    await store.notify("due")


async def test_timers_fire_on_the_dot_and_never_early(store):
    receiver = Receiver(store)
    async with running(store, receiver):
        await create(store, 50, 400)
        await receiver.wait_for(50)
    early = [slot - at for _, slot, at in receiver.arrived if at < slot]
    assert early == []
    page = await store.list_runs(1, RunFilter(limit=100))
    assert [run.status for run in page.items] == ["DONE"] * 50


async def test_a_hint_wakes_a_node_that_would_look_in_an_hour(store):
    receiver = Receiver(store)
    async with running(store, receiver, poll_interval=3_600_000, granularity=3_600_000):
        await create(store, 1, 50)
        await receiver.wait_for(1, seconds=10)
    assert len(receiver.arrived) == 1


async def test_a_node_takes_over_from_one_that_is_gone_without_a_word(store):
    one, two = Receiver(store), Receiver(store)
    one.hangs = True
    victim = Node(
        store=store,
        targets=one.targets,
        clock=SystemClock(),
        rng=random.Random(1),
        settings=EngineSettings(lease=2000, concurrency=5),
    )
    await victim.__aenter__()
    await until(lambda: victim.ready)
    await create(store, 5, 10)
    await one.wait_for(5)
    async with running(store, two, seed=2, lease=2000):
        await create(store, 20, 10)
        await two.wait_for(20)  # the other has no room
        assert victim._main is not None
        victim._main.cancel()
        await two.wait_for(25)
    assert {run for run, _, _ in two.arrived} > {run for run, _, _ in one.arrived}
    runs = (await store.list_runs(1, RunFilter(limit=100))).items
    assert [run.status for run in runs] == ["DONE"] * 25
    assert sorted(run.losses for run in runs) == [0] * 20 + [1] * 5
