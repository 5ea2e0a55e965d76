"""Runs that were handed over to a target where calls wait: what never began goes back untried."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from onthedot.engine.messages import Return
from onthedot.model.duration import Duration
from onthedot.model.run import Outcome
from onthedot.store import Finished
from onthedot.targets import Call
from tests.engine.making import claimed
from tests.engine.test_monitor import Bench


class Queue:
    """Calls wait here until the test lets them begin; a withdrawal says whether it came before that."""

    def __init__(self, bench: Bench) -> None:
        self.calls: list[tuple[Call, Callable[[Outcome | None], None]]] = []
        self.begun = False
        bench.sender.direct["webhook"] = self.hand_over

    def hand_over(self, call: Call, ended: Callable[[Outcome | None], None]) -> Callable[[], bool]:
        self.calls.append((call, ended))
        return lambda: self.begun

    def begin(self, at: float) -> None:
        self.begun = True
        begun = self.calls[0][0].begun
        assert begun is not None
        begun(at)


async def test_what_found_nobody_to_do_it_goes_back(fake_clock):
    bench = Bench(fake_clock)
    queue = Queue(bench)
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    queue.calls[0][1](None)
    assert bench.recorder.take_all() == [Return("1-1", 1)]
    assert bench.ended == [monitor]
    assert monitor.seconds is None  # it says nothing about how long runs take


async def test_what_waits_may_begin_only_as_long_as_the_lease_lasts(fake_clock):
    bench = Bench(fake_clock)
    queue = Queue(bench)
    await bench.start(claimed("1-1", due_at=bench.now))
    may_begin = queue.calls[0][0].may_begin
    assert may_begin()
    await fake_clock.advance(12)  # frozen, and nobody beat meanwhile
    assert not may_begin()


async def test_what_waits_may_begin_only_as_long_as_its_time_out_lasts(fake_clock):
    """A frozen process wakes to a connection that is there and a time-out that is over; whichever it looks at first."""
    bench = Bench(fake_clock)
    queue = Queue(bench)
    await bench.start(claimed("1-1", due_at=bench.now, timeout=Duration(2000)))
    may_begin = queue.calls[0][0].may_begin
    await fake_clock.advance(1.9)
    assert may_begin()
    await fake_clock.advance(0.1)
    assert not may_begin()


@pytest.mark.parametrize(("cause", "back"), [("timeout", True), ("interrupted", True), ("cancel", False)])
async def test_what_is_stopped_before_it_begins_costs_no_try(fake_clock, cause, back):
    bench = Bench(fake_clock)
    Queue(bench)
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    monitor.stop(cause)
    (told,) = bench.recorder.take_all()
    if back:
        assert told == Return("1-1", 1)
    else:
        assert isinstance(told, Finished)
        assert (told.outcome.kind, told.started_at) == ("cancelled", None)


async def test_lateness_and_timeout_count_from_when_it_begins(fake_clock):
    bench = Bench(fake_clock)
    queue = Queue(bench)

    async def watch() -> None:
        while True:
            await bench.deadlines.step()

    watching = asyncio.ensure_future(watch())
    await bench.start(claimed("1-1", due_at=bench.now, timeout=Duration(1000)))
    await fake_clock.advance(0.9)
    queue.begin(fake_clock.monotonic())
    await fake_clock.advance(0.9)
    assert bench.recorder.take_all() == []
    await fake_clock.advance(0.1)
    result = bench.result()
    assert result.outcome.kind == "timeout"
    assert (result.started_at, result.lateness_ms, result.duration_ms) == (bench.now + 900, 900, 1000)
    watching.cancel()


async def test_what_is_recalled_while_it_waits_may_not_begin(fake_clock):
    """Its job was paused or deleted: what has not begun goes back when it asks; what has begun never asks."""
    bench = Bench(fake_clock)
    queue = Queue(bench)
    monitor = await bench.start(claimed("1-1", due_at=bench.now, timeout=Duration(60_000)))
    may_begin = queue.calls[0][0].may_begin
    assert may_begin()
    monitor.recall()
    assert not may_begin()
    assert bench.recorder.take_all() == []
    queue.calls[0][1](None)
    assert bench.recorder.take_all() == [Return("1-1", 1)]
