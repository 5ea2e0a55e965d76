"""Concurrency groups on several nodes with one clock: never more than may, none waits in vain, whoever dies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from onthedot.clock import FakeClock
from onthedot.model.duration import Duration
from onthedot.model.policy import Concurrency
from onthedot.model.schedule import Schedule
from tests.engine.cluster import Cluster
from tests.engine.making import spec


@pytest.fixture
async def cluster(fake_clock: FakeClock) -> AsyncIterator[Cluster]:
    cluster = await Cluster.open(fake_clock)
    yield cluster
    await cluster.close()


async def many(cluster: Cluster, count: int, limit: int) -> None:
    for _ in range(count):
        group = Concurrency(group="db", limit=limit)
        await cluster.create(spec(schedule=Schedule(in_=Duration(1000)), concurrency=group))


async def running(cluster: Cluster) -> int:
    (view,) = await cluster.store.list_groups(1)
    return view.running


async def test_short_runs_follow_each_other_at_once(cluster: Cluster, fake_clock: FakeClock):
    """Not one a second, when the next look would be: who ends calls the next and looks."""
    node = await cluster.node()
    await many(cluster, 40, 2)
    await fake_clock.advance(3.5)
    assert len(node.sender.sent) == 40


async def test_a_killed_node_frees_its_places_when_its_lease_is_over(cluster: Cluster, fake_clock: FakeClock):
    first, second = await cluster.node(), await cluster.node()
    for member in (first, second):
        member.sender.hold = asyncio.Event()
    await many(cluster, 6, 3)
    await fake_clock.advance(2)
    assert len(first.sender.sent) + len(second.sender.sent) == 3
    assert await running(cluster) == 3
    victim, other = (first, second) if first.sender.sent else (second, first)
    had = len(victim.sender.sent)
    victim.kill()
    await fake_clock.advance(3)
    assert len(other.sender.sent) == 3 - had, "the lease is not over"
    await cluster.until(lambda: len(other.sender.sent) == 3, most=10)
    assert await running(cluster) == 3
    other.sender.hold.set()
    await cluster.until(lambda: len(other.sender.sent) == 6, most=10)
