"""A Monitor is out of the garbage collector's sight: however it ends, nothing may keep it but who still asks for it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

import pytest

from onthedot.model.duration import Duration
from onthedot.model.run import Outcome
from onthedot.targets import Call
from tests.engine.making import OK, claimed
from tests.engine.test_monitor import Bench


class Direct:
    """A target that is handed calls, and is called to withdraw them: it and the Monitor refer to each other."""

    def __init__(self, call: Call, ended: Callable[[Outcome], None]) -> None:
        self.call, self.ended = call, ended

    def withdraw(self) -> None: ...


class Door:
    def __init__(self, bench: Bench) -> None:
        self.open: list[Direct] = []
        bench.sender.direct["webhook"] = self.hand_over

    def hand_over(self, call: Call, ended: Callable[[Outcome], None]) -> Callable[[], None]:
        self.open.append(Direct(call, ended))
        return self.open[-1].withdraw


async def over(bench: Bench) -> None:
    await bench.clock.settle()
    assert bench.ended
    bench.ended.clear()
    bench.sender.calls.clear()
    bench.recorder.take_all()


@pytest.mark.parametrize("how", ["answered", "cancel", "gone", "interrupted", "timeout"])
async def test_one_that_was_handed_over(fake_clock, how):
    bench, run = Bench(fake_clock), claimed("1-1", due_at=fake_clock.now_ms(), timeout=Duration(500))
    before = sys.getrefcount(run)
    door = Door(bench)
    monitor = await bench.start(run)
    if how == "answered":
        door.open[0].ended(OK)
    else:
        monitor.stop(how)
    door.open.clear()
    del monitor
    await over(bench)
    assert sys.getrefcount(run) == before


@pytest.mark.parametrize("how", ["answered", "cancel", "gone", "interrupted", "cancelled from outside"])
async def test_one_with_a_task_of_its_own(fake_clock, how):
    bench, run = Bench(fake_clock), claimed("1-1", due_at=fake_clock.now_ms(), timeout=Duration(500))
    before = sys.getrefcount(run)
    bench.sender.hold = asyncio.Event()
    monitor = await bench.start(run)
    if how == "answered":
        bench.sender.hold.set()
    elif how == "cancelled from outside":
        assert monitor.task is not None
        monitor.task.cancel()
    else:
        monitor.stop(how)
    del monitor
    await over(bench)
    assert sys.getrefcount(run) == before


@pytest.mark.parametrize("how", ["let in", "stopped", "cancelled from outside"])
async def test_one_whose_result_waits_for_room(fake_clock, how):
    bench = Bench(fake_clock, mailbox=1)
    await bench.start(claimed("1-1", due_at=bench.now))
    run = claimed("2-1", due_at=bench.now)
    before = sys.getrefcount(run)
    monitor = await bench.start(run)
    assert monitor.task is not None
    if how == "stopped":
        monitor.stop("interrupted")
    elif how == "cancelled from outside":
        monitor.task.cancel()
    else:
        bench.recorder.take_all()
    del monitor
    await over(bench)
    assert sys.getrefcount(run) == before
