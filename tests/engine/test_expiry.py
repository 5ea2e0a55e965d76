"""`expires_in` is asked right before the send, always: what has not begun by then is skipped as late."""

from __future__ import annotations

import asyncio

import pytest

from onthedot.clock import FakeClock
from onthedot.model.duration import Duration
from onthedot.model.run import Attempt
from onthedot.plan import Done
from tests.engine.cluster import Cluster
from tests.engine.making import FAILED, FUNCTION, HOOK, Desk, claimed, spec
from tests.engine.scripted import AWAY
from tests.engine.test_begin_gate import Bench as GateBench
from tests.engine.test_monitor import Bench
from tests.engine.test_node_firing import due_in

EXPIRES = Duration(2000)


@pytest.fixture
async def cluster(fake_clock: FakeClock):
    cluster = await Cluster.open(fake_clock)
    yield cluster
    await cluster.close()


@pytest.mark.parametrize("delivery", ["at_most_once", "at_least_once"])
async def test_with_the_database_away_at_its_instant(cluster, fake_clock, delivery):
    """Seen: expires in 2 s, sent 22 s late."""
    node = await cluster.node()
    job = await cluster.create(spec(schedule=due_in(1000), delivery=delivery, expires_in=EXPIRES))
    await fake_clock.advance(0.5)
    assert node.node.load.held == 1
    node.way.away = True
    await fake_clock.advance(3)
    node.way.away = False
    await fake_clock.advance(5)
    assert node.sender.calls == []
    run = await cluster.run(job.id)
    assert (run.status, run.reason, run.tries, run.started_at) == ("SKIPPED", "late", 0, None)


@pytest.mark.parametrize("delivery", ["at_most_once", "at_least_once"])
async def test_with_the_database_back_in_time_it_is_sent(cluster, fake_clock, delivery):
    node = await cluster.node()
    job = await cluster.create(spec(schedule=due_in(1000), delivery=delivery, expires_in=EXPIRES))
    await fake_clock.advance(0.9)
    node.way.away = True
    await fake_clock.advance(0.8)
    node.way.away = False
    await fake_clock.advance(2)
    assert len(node.sender.calls) == 1
    assert (await cluster.run(job.id)).status == "DONE"


@pytest.mark.parametrize("delivery", ["at_most_once", "at_least_once"])
async def test_its_node_died_before_its_instant(cluster, fake_clock, delivery):
    """Seen: expires in 500 ms, sent 4.8 s late by the next node."""
    victim = await cluster.node()
    job = await cluster.create(spec(schedule=due_in(1900), delivery=delivery, expires_in=Duration(500)))
    await fake_clock.advance(1)
    assert victim.node.load.held == 1
    heir = await cluster.node()
    victim.kill()
    await fake_clock.advance(10)
    assert heir.sender.calls == []
    run = await cluster.run(job.id)
    assert (run.status, run.reason, run.losses, run.tries) == ("SKIPPED", "late", 0, 0)


async def test_its_node_died_in_the_middle_of_it(cluster, fake_clock):
    """It began in time: at least once means once more, however late."""
    victim = await cluster.node()
    victim.sender.hold = asyncio.Event()
    job = await cluster.create(spec(FUNCTION, schedule=due_in(100), expires_in=Duration(500)))
    await fake_clock.advance(0.5)
    assert len(victim.sender.calls) == 1
    heir = await cluster.node()
    victim.kill()
    await fake_clock.advance(10)
    assert len(heir.sender.calls) == 1
    run = await cluster.run(job.id)
    assert (run.status, run.losses, run.attempts[0].outcome) == ("DONE", 1, "lost")
    assert run.attempts[0].started_at is not None


async def test_a_job_that_may_expire_only_since_an_edit_may_have_been_sent(cluster, fake_clock):
    """Nobody recorded the send, because there was no reason to: it must not stand in the ledger as skipped."""
    victim = await cluster.node()
    victim.sender.hold = asyncio.Event()
    job = await cluster.create(spec(FUNCTION, schedule=due_in(100)))
    await fake_clock.advance(0.5)
    assert len(victim.sender.calls) == 1
    await cluster.store.update_job(
        1, job.id, lambda old: spec(FUNCTION, schedule=old.schedule, expires_in=Duration(500))
    )
    heir = await cluster.node()
    victim.kill()
    await fake_clock.advance(10)
    assert len(heir.sender.calls) == 1
    assert (await cluster.run(job.id)).losses == 1


async def test_a_retry_does_not_expire(cluster, fake_clock):
    node = await cluster.node()
    node.sender.outcomes = [FAILED]
    job = await cluster.create(spec(schedule=due_in(100), expires_in=Duration(200)))
    await fake_clock.advance(5)
    assert len(node.sender.calls) == 2
    assert (await cluster.run(job.id)).status == "DONE"


async def test_what_waits_for_a_connection_may_begin_only_until_it_expires(fake_clock):
    bench = Bench(fake_clock)
    desk = Desk(bench.sender)
    await bench.start(claimed("1-1", due_at=bench.now, timeout=Duration(60_000), expires_in=EXPIRES))
    may_begin = desk.calls[0].call.may_begin
    await fake_clock.advance(2)
    assert may_begin()
    await fake_clock.advance(0.002)
    assert not may_begin()
    desk.calls[0].tell()
    result = bench.result()
    assert (result.outcome.kind, result.started_at) == ("expired", None)
    assert result.decision == Done(status="skipped", reason="late", tries=0, losses=0)


async def test_what_waited_for_its_turn_is_asked_when_it_starts(fake_clock):
    bench = Bench(fake_clock)
    desk = Desk(bench.sender)
    await bench.start(claimed("1-1", due_at=bench.now - 2001, expires_in=EXPIRES))
    assert desk.calls == []
    assert bench.result().outcome.kind == "expired"


async def test_at_the_gate_it_is_asked_before_every_question(fake_clock):
    bench = GateBench(fake_clock)
    bench.store.script("begin", AWAY)
    bench.arrive("1-1", expires_in=Duration(10))
    step = asyncio.ensure_future(bench.gate.step())
    await fake_clock.settle()
    await fake_clock.advance(0.5)
    assert step.done()
    assert len(bench.store.asked_for("begin")) == 1
    assert bench.sender.sent == []
    assert bench.result().outcome.kind == "expired"


async def test_an_answer_that_came_too_late_sends_nothing(fake_clock):
    bench = GateBench(fake_clock)
    begin, asked = bench.store.begin, asyncio.Event()

    async def slow(node, fences):
        asked.set()
        await fake_clock.sleep(0.2)
        return await begin(node, fences)

    bench.store.begin = slow  # type: ignore[method-assign]
    bench.arrive("1-1", expires_in=Duration(100))
    step = asyncio.ensure_future(bench.gate.step())
    await fake_clock.settle()
    assert asked.is_set()
    await fake_clock.advance(0.2)
    assert step.done()
    assert bench.sender.sent == []
    assert bench.result().outcome.kind == "expired"


@pytest.mark.parametrize(("started_at", "begun"), [(None, False), (5, True)])
def test_an_attempt_that_was_lost_before_it_began_is_no_beginning(started_at, begun):
    lost = Attempt(attempt=1, node="n", started_at=started_at, finished_at=9, outcome="lost")
    assert claimed("1-1", target=HOOK, attempts=[lost]).begun_before is begun
