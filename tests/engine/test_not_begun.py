"""Runs that were handed over to a target where calls wait: what never began goes back untried."""

from __future__ import annotations

import asyncio

import pytest

from onthedot.engine.messages import Return
from onthedot.model.duration import Duration
from onthedot.store import Finished
from tests.engine.making import OK, Desk, claimed, stop
from tests.engine.test_monitor import Bench


async def test_what_found_nobody_to_do_it_goes_back(fake_clock):
    bench = Bench(fake_clock)
    desk = Desk(bench.sender)
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    desk.calls[0].tell()
    assert bench.recorder.take_all() == [Return("1-1", 1)]
    assert bench.ended == [monitor]
    assert monitor.seconds is None  # it says nothing about how long runs take


async def test_what_waits_may_begin_only_as_long_as_the_lease_lasts(fake_clock):
    bench = Bench(fake_clock)
    desk = Desk(bench.sender)
    await bench.start(claimed("1-1", due_at=bench.now))
    may_begin = desk.calls[0].call.may_begin
    assert may_begin()
    await fake_clock.advance(12)  # frozen, and nobody beat meanwhile
    assert not may_begin()


async def test_what_waits_may_begin_only_as_long_as_its_time_out_lasts(fake_clock):
    """A frozen process wakes to a connection that is there and a time-out that is over; whichever it looks at first."""
    bench = Bench(fake_clock)
    desk = Desk(bench.sender)
    await bench.start(claimed("1-1", due_at=bench.now, timeout=Duration(2000)))
    may_begin = desk.calls[0].call.may_begin
    await fake_clock.advance(1.9)
    assert may_begin()
    await fake_clock.advance(0.1)
    assert not may_begin()


@pytest.mark.parametrize(("cause", "back"), [("timeout", True), ("interrupted", True), ("cancelled", False)])
async def test_what_is_stopped_before_it_begins_costs_no_try(fake_clock, cause, back):
    bench = Bench(fake_clock)
    Desk(bench.sender)
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    stop(monitor, cause)
    (told,) = bench.recorder.take_all()
    if back:
        assert told == Return("1-1", 1)
    else:
        assert isinstance(told, Finished)
        assert (told.outcome.kind, told.started_at) == ("cancelled", None)


async def test_lateness_and_timeout_count_from_when_it_begins(fake_clock):
    bench = Bench(fake_clock)
    desk = Desk(bench.sender)

    async def watch() -> None:
        while True:
            await bench.deadlines.step()

    watching = asyncio.ensure_future(watch())
    await bench.start(claimed("1-1", due_at=bench.now, timeout=Duration(1000)))
    await fake_clock.advance(0.9)
    desk.calls[0].begin(fake_clock.monotonic())
    await fake_clock.advance(0.9)
    assert bench.recorder.take_all() == []
    await fake_clock.advance(0.1)
    result = bench.result()
    assert result.outcome.kind == "timeout"
    assert (result.started_at, result.lateness_ms, result.duration_ms) == (bench.now + 900, 900, 1000)
    watching.cancel()


async def test_what_is_recalled_while_it_waits_goes_back_at_once(fake_clock):
    """Its job was paused or deleted."""
    bench = Bench(fake_clock)
    desk = Desk(bench.sender)
    monitor = await bench.start(claimed("1-1", due_at=bench.now, timeout=Duration(60_000)))
    may_begin = desk.calls[0].call.may_begin
    assert may_begin()
    monitor.recall()
    assert not may_begin()
    assert desk.calls[0].withdrawn
    assert (bench.recorder.take_all(), bench.ended) == ([Return("1-1", 1)], [monitor])


async def test_what_has_begun_is_not_recalled(fake_clock):
    bench = Bench(fake_clock)
    desk = Desk(bench.sender, begins=True)
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    monitor.recall()
    assert (desk.calls[0].stops, bench.ended) == (["recalled"], [])
    desk.calls[0].tell(OK)
    assert bench.result().outcome == OK


async def test_what_asks_whether_it_may_begin_after_a_stop_may_not(fake_clock):
    """It was on its way between two threads when it was asked to stop, and nobody knows whether it has begun."""
    bench = Bench(fake_clock)
    desk = Desk(bench.sender, begins=True, stops_at_once=False)
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    stop(monitor, "cancelled")
    assert not desk.calls[0].call.may_begin()
