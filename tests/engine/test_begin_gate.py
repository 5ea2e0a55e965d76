"""At-most-once: recorded before it is sent; not sent without knowing."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from onthedot.clock import FakeClock
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.messages import Return
from onthedot.engine.running.begin_gate import BeginGate
from onthedot.engine.running.monitor import Monitor
from onthedot.engine.tuning import BEGIN_VALID
from tests.engine.making import claimed, stop
from tests.engine.scripted import AWAY, ScriptedStore
from tests.engine.test_monitor import Bench as MonitorBench


class Bench(MonitorBench):
    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.store = ScriptedStore()
        self.gate = BeginGate(
            "me",
            store=self.store,
            clock=clock,
            health=StoreHealth(),
            backoff=Backoff(random.Random(1)),
            size=10,
        )

    def arrive(self, run_id: str, **policy: Any) -> Monitor:
        monitor = self.monitor(claimed(run_id, due_at=self.now, delivery="at_most_once", **policy))
        self.gate.mailbox.put_over(monitor)
        return monitor


@pytest.fixture
def bench(fake_clock: FakeClock) -> Bench:
    return Bench(fake_clock)


async def test_begun_in_one_batch_and_then_sent(bench, fake_clock):
    for number in range(3):
        bench.arrive(f"{number}-1")
    await bench.gate.step()
    assert bench.sender.sent == []
    await fake_clock.settle()
    assert bench.store.asked_for("begin") == [[("0-1", 1), ("1-1", 1), ("2-1", 1)]]
    assert bench.sender.sent == ["0-1", "1-1", "2-1"]


async def test_refused_goes_back_unsent(bench, fake_clock):
    bench.store.script("begin", {"2-1"})
    refused = bench.arrive("1-1")
    bench.arrive("2-1")
    await bench.gate.step()
    await fake_clock.settle()
    assert bench.sender.sent == ["2-1"]
    assert refused in bench.ended
    assert Return("1-1", 1) in bench.recorder.take_all()


async def test_without_an_answer_nothing_is_sent_until_there_is_one(bench, fake_clock):
    bench.store.script("begin", AWAY, AWAY)
    bench.arrive("1-1")
    step = asyncio.ensure_future(bench.gate.step())
    await fake_clock.settle()
    assert bench.sender.sent == []
    await fake_clock.advance(0.5)
    assert step.done()
    assert bench.sender.sent == ["1-1"]
    assert len(bench.store.asked_for("begin")) == 3


async def test_stopped_while_it_waits_it_goes_back_unsent(bench, fake_clock):
    bench.store.script("begin", AWAY)
    monitor = bench.arrive("1-1")
    step = asyncio.ensure_future(bench.gate.step())
    await fake_clock.settle()
    stop(monitor, "interrupted")
    await fake_clock.advance(0.5)
    assert step.done()
    assert bench.sender.sent == []
    assert bench.recorder.take_all() == [Return("1-1", 1)]


async def test_cancelled_while_it_waits_it_ends_as_cancelled(bench, fake_clock):
    monitor = bench.arrive("1-1")
    stop(monitor, "cancelled")
    await bench.gate.step()
    await fake_clock.settle()
    assert bench.store.asked_for("begin") == []
    assert bench.result().outcome.kind == "cancelled"


async def test_a_lease_that_ended_meanwhile_sends_it_back(bench, fake_clock):
    bench.arrive("1-1")
    await fake_clock.advance(10)
    await bench.gate.step()
    await fake_clock.settle()
    assert bench.sender.sent == []
    assert bench.recorder.take_all() == [Return("1-1", 1)]


async def test_recalled_while_it_waits_it_goes_back_unsent(bench, fake_clock):
    """Whatever `begin` said: nothing has been sent."""
    bench.store.script("begin", AWAY)
    monitor = bench.arrive("1-1")
    step = asyncio.ensure_future(bench.gate.step())
    await fake_clock.settle()
    monitor.recall()
    await fake_clock.advance(0.5)
    assert step.done()
    assert bench.sender.sent == []
    assert bench.recorder.take_all() == [Return("1-1", 1)]


async def test_an_answer_that_took_too_long_is_asked_for_again(bench, fake_clock):
    """A node frozen with it in its socket: meanwhile the job may have been deleted, and that been acknowledged."""
    begin = bench.store.begin

    async def slow(node, fences):
        await fake_clock.sleep(BEGIN_VALID + 0.1 if not bench.store.asked else 0.1)
        return await begin(node, fences)

    bench.store.begin = slow
    bench.store.script("begin", {"1-1"}, set())
    bench.arrive("1-1")
    step = asyncio.ensure_future(bench.gate.step())
    await fake_clock.settle()
    await fake_clock.advance(BEGIN_VALID + 0.1)
    assert bench.sender.sent == []
    await fake_clock.advance(0.1)
    assert step.done()
    assert bench.sender.sent == []
    assert bench.recorder.take_all() == [Return("1-1", 1)]
