"""A node that is cut off stops what must not run twice at once, before another one may start it."""

from __future__ import annotations

import asyncio

import pytest

from onthedot.clock import FakeClock
from onthedot.model.duration import Duration
from onthedot.store import Finished
from tests.engine.cluster import Cluster
from tests.engine.making import COMMAND, FUNCTION, HOOK, claimed, spec
from tests.engine.test_monitor import Bench
from tests.engine.test_node_firing import due_in


@pytest.fixture
async def cluster(fake_clock: FakeClock):
    cluster = await Cluster.open(fake_clock)
    yield cluster
    await cluster.close()


@pytest.mark.parametrize("target", [FUNCTION, COMMAND, HOOK])
@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
async def test_on_a_node_that_is_cut_off_it_ends_before_another_starts_it(cluster, fake_clock, target, overlap):
    cut_off = await cluster.node()
    cut_off.sender.hold = asyncio.Event()
    job = await cluster.create(spec(target, schedule=due_in(100), overlap=overlap, timeout=Duration(60_000)))
    await fake_clock.advance(0.5)
    assert len(cut_off.sender.calls) == 1
    heir = await cluster.node()
    await fake_clock.advance(0.5)
    cut_off.way.away = True
    await cluster.until(lambda: cut_off.sender.cancelled, most=5)
    assert heir.sender.calls == []
    assert await cluster.until(lambda: heir.sender.calls, most=5) > 0.5
    cut_off.way.away = False
    await fake_clock.advance(5)
    run = await cluster.run(job.id)
    assert (run.status, run.node, run.attempt) == ("DONE", heir.id, 2)


async def test_what_may_overlap_goes_on(cluster, fake_clock):
    """At least once: it may be run elsewhere as well, and mostly it is not."""
    node = await cluster.node()
    node.sender.hold = asyncio.Event()
    job = await cluster.create(spec(FUNCTION, schedule=due_in(100)))
    await fake_clock.advance(0.5)
    node.way.away = True
    await fake_clock.advance(6)
    assert node.sender.cancelled == []
    node.way.away = False
    node.sender.hold.set()
    await fake_clock.advance(3)
    assert (await cluster.run(job.id)).status == "DONE"


async def test_when_nobody_took_it_it_is_run_again_and_no_try_counted(cluster, fake_clock):
    """The database was away for all: the row is still ours, and the attempt is known to have been stopped."""
    node = await cluster.node()
    node.sender.hold = asyncio.Event()
    job = await cluster.create(spec(FUNCTION, schedule=due_in(100), overlap="skip"))
    await fake_clock.advance(0.5)
    node.way.away = True
    await cluster.until(lambda: node.sender.cancelled, most=5)
    node.sender.hold = None
    node.way.away = False
    await fake_clock.advance(5)
    run = await cluster.run(job.id)
    assert (run.status, run.tries, run.losses, len(node.sender.calls)) == ("DONE", 1, 0, 2)
    assert [attempt.outcome for attempt in run.attempts] == ["interrupted", "ok"]


async def test_at_most_once_is_not_sent_again(cluster, fake_clock):
    node = await cluster.node()
    node.sender.hold = asyncio.Event()
    job = await cluster.create(spec(FUNCTION, schedule=due_in(100), overlap="skip", delivery="at_most_once"))
    await fake_clock.advance(0.5)
    node.way.away = True
    await cluster.until(lambda: node.sender.cancelled, most=5)
    node.way.away = False
    await fake_clock.advance(5)
    run = await cluster.run(job.id)
    assert (run.status, run.reason, len(node.sender.calls)) == ("FAILED", "unknown", 1)


async def test_a_slow_beat_stops_nothing(cluster, fake_clock):
    node = await cluster.node()
    node.sender.hold = asyncio.Event()
    await cluster.create(spec(FUNCTION, schedule=due_in(100), overlap="skip"))
    await fake_clock.advance(0.5)
    for _ in range(5):
        node.way.away = True
        await fake_clock.advance(2)
        node.way.away = False
        await fake_clock.advance(1.5)
    assert node.sender.cancelled == []


async def test_who_is_alone_stops_nothing(cluster, fake_clock):
    node = await cluster.node(alone=True)
    node.sender.hold = asyncio.Event()
    await cluster.create(spec(FUNCTION, schedule=due_in(100), overlap="skip"))
    await fake_clock.advance(0.5)
    node.way.away = True
    await fake_clock.advance(20)
    assert node.sender.cancelled == []


async def test_what_does_not_end_when_told_is_told_again(cluster, fake_clock):
    """A command gets SIGTERM the first time and SIGKILL the second."""
    node = await cluster.node()
    told = 0

    async def stubborn(call):
        nonlocal told
        while told < 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                told += 1
        raise asyncio.CancelledError

    node.sender.send = stubborn
    await cluster.create(spec(COMMAND, schedule=due_in(100), overlap="skip"))
    await fake_clock.advance(0.5)
    node.way.away = True
    await cluster.until(lambda: told == 2, most=5)
    assert node.node.load.running == 0


async def test_a_result_that_waits_to_be_written_is_kept(fake_clock):
    bench = Bench(fake_clock, mailbox=1)
    await bench.start(claimed("1-1", due_at=bench.now, overlap="skip"))
    monitor = await bench.start(claimed("2-1", due_at=bench.now, overlap="skip"))
    monitor.lose_lease()
    await fake_clock.settle()
    (first,) = bench.recorder.take_all()
    await fake_clock.settle()
    (second,) = bench.recorder.take_all()
    assert isinstance(first, Finished)
    assert isinstance(second, Finished)
    assert [first.outcome.kind, second.outcome.kind] == ["ok", "ok"]
