"""Functions of the program itself that are started before their instant."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from onthedot.clock import SystemClock
from onthedot.model.run import Outcome
from onthedot.model.targets import FunctionTarget
from onthedot.targets import InProcessFunctions
from onthedot.targets.contract import Ended, Handle, Stop
from onthedot.targets.inprocess.loop_thread import GATHER, GATHER_SECONDS
from tests.services.waiting import until
from tests.targets.conftest import MakeCall, WaitsForEver
from tests.targets.test_timer_queue import HandClock

IT = FunctionTarget(function="it")
NEVER = 1e9


class Told(list[Outcome | None]):
    """What was told of one call, and when it was told to have begun."""

    def __init__(self) -> None:
        self.begun: list[float] = []
        self.ends: list[Ended] = []
        self.handle: Handle

    def done(self, ended: Ended) -> None:
        self.append(ended.outcome)
        self.ends.append(ended)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def callables(clock: HandClock) -> AsyncIterator[InProcessFunctions]:
    async with InProcessFunctions(clock=clock) as callables:
        yield callables


class Desk:
    """Starts calls of `it`, and lets time pass over there."""

    def __init__(self, callables: InProcessFunctions, clock: HandClock, make_call: MakeCall) -> None:
        self.callables = callables
        self._clock = clock
        self._make_call = make_call

    def start(self, at: float, target: FunctionTarget = IT, **call: Any) -> Told:
        told = Told()
        made = self._make_call(target, begun=told.begun.append, **call)
        told.handle = self.callables.start(made, at, told.done)
        return told

    async def arrived(self) -> None:
        """What was started is known over there."""
        await asyncio.sleep(0)
        await until(lambda: not self.callables._loop_thread._timers._arrivals)

    async def pass_to(self, at: float) -> None:
        """It is so late, and whoever has set the alarm for it is woken."""
        await self.arrived()
        self._clock.now = at
        loop = self.callables._loop_thread._loop
        assert loop is not None
        loop.call_soon_threadsafe(self._clock.expire)
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop))
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop))


@pytest.fixture
def desk(callables: InProcessFunctions, clock: HandClock, make_call: MakeCall) -> Desk:
    return Desk(callables, clock, make_call)


async def test_it_begins_at_its_instant_and_says_when(desk: Desk, callables: InProcessFunctions, clock: HandClock):
    seen: list[float] = []

    async def it(a: int) -> int:
        seen.append(clock.now)
        clock.now += 0.25
        return a

    callables.add("it", it)
    told = desk.start(100.5, params={"a": 7})
    await desk.pass_to(100.499)
    assert seen == []
    await desk.pass_to(100.501)
    await until(lambda: told)
    assert told == [Outcome(kind="ok", detail={"result": 7})]
    assert (seen, told.ends[0].began, told.ends[0].ended) == ([100.501], 100.501, 100.751)


async def test_on_a_real_clock_never_before_and_soon_after(make_call: MakeCall):
    clock, late = SystemClock(), list[float]()

    async def it(due: float) -> None:
        late.append(clock.monotonic() - due)

    async with InProcessFunctions(clock=clock) as callables:
        callables.add("it", it)
        ends = [Told() for _ in range(50)]
        for number, told in enumerate(ends):
            due = clock.monotonic() + 0.002 * number
            callables.start(make_call(IT, params={"due": due}), due, told.done)
        await until(lambda: all(ends))
    assert len(late) == 50
    assert min(late) >= 0
    assert sorted(late)[25] < 1  # on a loaded machine; what it is on a quiet one is in docs/performance.md


async def test_what_is_taken_back_is_never_called(desk: Desk, callables: InProcessFunctions):
    called: list[str] = []

    async def it(name: str) -> None:
        called.append(name)

    callables.add("it", it)
    unwanted, wanted = desk.start(101, params={"name": "unwanted"}), desk.start(101, params={"name": "wanted"})
    assert unwanted.handle.stop("recalled") is Stop.NOT_BEGUN
    await desk.pass_to(101)
    await until(lambda: wanted)
    assert (called, unwanted) == (["wanted"], [])
    assert wanted.handle.stop("recalled") is Stop.ENDED


async def test_what_became_another_nodes_meanwhile_is_not_called(desk: Desk, callables: InProcessFunctions):
    called: list[str] = []

    async def it() -> None:
        called.append("it")

    callables.add("it", it)
    told = desk.start(101, may_begin=lambda: False)
    await desk.pass_to(101)
    await until(lambda: told)
    assert (told, called) == ([None], [])
    assert told.ends[0].began is None


async def test_stopped_before_its_instant_it_never_begins(desk: Desk, callables: InProcessFunctions):
    async def it() -> None: ...

    callables.add("it", it)
    told, other = desk.start(101), desk.start(101)
    assert told.handle.stop("cancelled") is Stop.NOT_BEGUN
    await desk.pass_to(101)
    await until(lambda: other)
    assert told == []


async def test_stopped_while_it_waits_it_is_cancelled(desk: Desk, callables: InProcessFunctions):
    waits = WaitsForEver()
    callables.add("it", waits.it)
    told = desk.start(101)
    await desk.pass_to(101)
    await until(waits.began.is_set)
    assert told.handle.stop("recalled") is Stop.STOPPING
    assert told.handle.stop("cancelled") is Stop.STOPPING
    await until(waits.cancelled.is_set)
    await until(lambda: told)
    assert (told, told.ends[0].began) == ([None], 101)


async def test_stopped_when_it_has_ended_it_is_told_first(desk: Desk, callables: InProcessFunctions):
    """A time-out that is over here, and a result that still waits there for others: it has come in time."""

    async def it() -> None: ...

    callables.add("it", it)
    told, follows = desk.start(101), desk.start(101 + GATHER_SECONDS / 2)
    await desk.pass_to(101)
    assert told == []
    assert told.handle.stop("timeout") is Stop.ENDED
    assert told == [Outcome(kind="ok")]
    assert follows == []


async def test_results_wait_for_the_next_and_come_home_together(desk: Desk, callables: InProcessFunctions):
    async def it() -> None: ...

    callables.add("it", it)
    all_told = [desk.start(101 + GATHER_SECONDS / 4 * n) for n in range(3)]
    for number in range(2):
        await desk.pass_to(101 + GATHER_SECONDS / 4 * number)
        assert not any(all_told)
    await desk.pass_to(101 + GATHER_SECONDS / 2)  # nothing follows
    await until(lambda: any(all_told))
    assert all(all_told)


async def test_no_more_than_a_few_wait(desk: Desk, callables: InProcessFunctions):
    async def it() -> None: ...

    callables.add("it", it)
    all_told = [desk.start(101 + 0.001 * n) for n in range(GATHER + 1)]
    for number in range(GATHER - 1):
        await desk.pass_to(101 + 0.001 * number)
        assert not any(all_told)
    await desk.pass_to(101 + 0.001 * (GATHER - 1))
    await until(lambda: any(all_told))
    assert [len(told) for told in all_told] == [1] * GATHER + [0]


async def test_none_waits_for_what_is_far_or_was_taken_back(desk: Desk, callables: InProcessFunctions):
    async def it() -> None: ...

    callables.add("it", it)
    first, second = desk.start(101), desk.start(101 + GATHER_SECONDS / 2)
    far = desk.start(101 + GATHER_SECONDS * 2)
    await desk.pass_to(101)
    assert not first
    assert second.handle.stop("recalled") is Stop.NOT_BEGUN
    await desk.pass_to(101 + GATHER_SECONDS / 2)  # where it would have been
    await until(lambda: first)
    assert not second
    assert not far


async def test_they_come_home_when_the_next_are_started(desk: Desk, callables: InProcessFunctions):
    async def it() -> None: ...

    callables.add("it", it)
    first, _ = desk.start(101), desk.start(101 + GATHER_SECONDS / 2)
    await desk.pass_to(101)
    assert not first
    desk.start(NEVER)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert first == [Outcome(kind="ok")]


async def test_what_was_not_early_waits_for_nobody(desk: Desk, callables: InProcessFunctions):
    async def it() -> None: ...

    callables.add("it", it)
    first, second = desk.start(101), desk.start(101 + GATHER_SECONDS / 2)
    await desk.pass_to(101)
    prompt = desk.start(50)
    await until(lambda: prompt)
    assert first
    assert not second


async def test_one_that_takes_longer_is_told_to_have_begun(desk: Desk, callables: InProcessFunctions):
    go_on = threading.Event()

    async def it() -> None:
        while not go_on.is_set():
            await asyncio.sleep(0)

    callables.add("it", it)
    told = desk.start(101)
    await desk.pass_to(101.25)
    await until(lambda: told.begun)
    assert (told.begun, told) == ([101.25], [])
    go_on.set()
    await until(lambda: told)
    assert len(told.begun) == 1


async def test_one_that_keeps_the_loop_to_itself_hides_nothing(desk: Desk, callables: InProcessFunctions):
    """It blocks, as an async function should not: it is told to have begun all the same, and results that waited for it
    come home."""
    let_go = threading.Event()

    async def it() -> None: ...

    async def blocks() -> bool:
        return let_go.wait(10)

    callables.add("it", it)
    callables.add("blocks", blocks)
    first = desk.start(101)
    blocking = desk.start(101 + GATHER_SECONDS / 2, FunctionTarget(function="blocks"))
    await desk.pass_to(101)
    assert not first
    blocked = asyncio.ensure_future(desk.pass_to(101 + GATHER_SECONDS / 2))
    await until(lambda: first)
    await until(lambda: blocking.begun)
    assert not blocking
    let_go.set()
    await blocked
    await until(lambda: blocking)
    assert blocking == [Outcome(kind="ok", detail={"result": True})]


async def test_it_has_begun_before_it_logs(desk: Desk, callables: InProcessFunctions):
    said: list[str] = []

    async def it() -> None:
        logging.getLogger("it").warning("working")

    callables.add("it", it)
    told = Told()
    call = desk._make_call(IT, log=lambda text: said.append(f"logged {len(told.begun)}"), begun=told.begun.append)
    callables.start(call, 101, told.done)
    await desk.pass_to(101)
    await until(lambda: told)
    assert said == ["logged 1"]
    assert len(told.begun) == 1


async def test_an_error_is_a_result(desk: Desk, callables: InProcessFunctions):
    async def it() -> None:
        raise ValueError("over there")

    callables.add("it", it)
    told = desk.start(101)
    await desk.pass_to(101)
    await until(lambda: told)
    assert told[0] is not None
    assert (told[0].kind, told[0].error) == ("error", "ValueError: over there")


async def test_only_what_runs_on_the_loop_keeps_time(callables: InProcessFunctions):
    async def waits(a: int) -> None: ...

    callables.add("it", waits)
    callables.add("blocks", lambda: None)
    assert callables.keeps_time(IT)
    assert not callables.keeps_time(FunctionTarget(function="blocks"))
    assert not callables.keeps_time(FunctionTarget(function="unknown"))


async def test_what_is_wrong_with_it_is_told_at_its_instant(desk: Desk, callables: InProcessFunctions):
    async def it(a: int) -> None: ...

    callables.add("it", it)
    told = [desk.start(101, params={"b": 1}), desk.start(101, FunctionTarget(function="unknown"))]
    await desk.pass_to(100.9)
    assert told == [[], []]
    await desk.pass_to(101)
    await until(lambda: all(told))
    outcomes = [one for (one,) in told if one is not None]
    assert [outcome.kind for outcome in outcomes] == ["error", "refused"]
    assert "the params do not match it" in (outcomes[0].error or "")
    assert [one.ends[0].began for one in told] == [101, 101]


async def test_without_the_engines_clock_it_keeps_no_time():
    async def it() -> None: ...

    async with InProcessFunctions() as callables:
        callables.add("it", it)
        assert not callables.keeps_time(IT)


async def test_leaving_forgets_what_waits_for_its_instant(clock: HandClock, make_call: MakeCall):
    called: list[str] = []

    async def it() -> None:
        called.append("it")

    told = Told()
    async with InProcessFunctions(clock=clock) as callables:
        callables.add("it", it)
        callables.start(make_call(IT), 101, told.done)
        await asyncio.sleep(0)
    assert clock.closed
    assert (told, called) == ([], [])
