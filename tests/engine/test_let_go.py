"""A Monitor is out of the garbage collector's sight: however it ends, nothing may keep it but who still asks for it."""

from __future__ import annotations

import asyncio
import sys

import pytest

from onthedot.model.duration import Duration
from tests.engine.making import OK, Desk, claimed, stop
from tests.engine.test_monitor import Bench


async def over(bench: Bench) -> None:
    await bench.clock.settle()
    assert bench.ended
    bench.ended.clear()
    bench.sender.calls.clear()
    bench.recorder.take_all()


@pytest.mark.parametrize("how", ["answered", "not begun", "cancelled", "gone", "interrupted", "timeout", "given up"])
async def test_one_that_has_a_handle(fake_clock, how):
    bench, run = Bench(fake_clock), claimed("1-1", due_at=fake_clock.now_ms(), timeout=Duration(500))
    before = sys.getrefcount(run)
    desk = Desk(bench.sender, begins=how != "not begun", stops_at_once=how != "given up")
    monitor = await bench.start(run)
    if how in ("answered", "not begun"):
        desk.calls[0].tell(OK if how == "answered" else None)
    elif how == "given up":
        stop(monitor, "cancelled")
        await fake_clock.advance(60)
        bench.expire()
    else:
        stop(monitor, how)
    desk.calls.clear()
    del monitor
    await over(bench)
    assert sys.getrefcount(run) == before


@pytest.mark.parametrize("how", ["answered", "cancelled", "gone", "interrupted", "not begun", "before its instant"])
async def test_one_that_is_a_coroutine(fake_clock, how):
    bench, run = Bench(fake_clock), claimed("1-1", due_at=fake_clock.now_ms(), timeout=Duration(500))
    if how == "before its instant":
        run = claimed("1-1", due_at=fake_clock.now_ms() + 10)
    before = sys.getrefcount(run)
    bench.sender.hold = asyncio.Event()
    monitor = bench.monitor(run)
    monitor.start()
    if how != "not begun":
        await fake_clock.settle()
    if how == "answered":
        bench.sender.hold.set()
    else:
        stop(monitor, "interrupted" if how in ("not begun", "before its instant") else how)
    del monitor
    await over(bench)
    await fake_clock.advance(1)
    bench.expire()
    assert sys.getrefcount(run) == before


@pytest.mark.parametrize("how", ["let in", "stopped"])
async def test_one_whose_result_waits_for_room(fake_clock, how):
    bench = Bench(fake_clock, mailbox=1)
    await bench.start(claimed("1-1", due_at=bench.now))
    run = claimed("2-1", due_at=bench.now)
    before = sys.getrefcount(run)
    monitor = await bench.start(run)
    assert monitor not in bench.ended
    if how == "stopped":
        stop(monitor, "interrupted")
    else:
        bench.recorder.take_all()
    del monitor
    await over(bench)
    assert sys.getrefcount(run) == before
