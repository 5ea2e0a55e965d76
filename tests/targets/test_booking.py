"""Callables that are handed over before their instant."""

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
from onthedot.targets import Callables
from onthedot.targets.contract import Booking, Timekeeper
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
        self.booking: Booking | None = None


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def callables(clock: HandClock) -> AsyncIterator[Callables]:
    async with Callables(clock=clock) as callables:
        yield callables


class Desk:
    """Books calls of `it`, and lets time pass over there."""

    def __init__(self, callables: Callables, clock: HandClock, make_call: MakeCall) -> None:
        self.callables = callables
        self._clock = clock
        self._make_call = make_call

    def book(self, at: float, target: FunctionTarget = IT, **call: Any) -> Told:
        told = Told()
        made = self._make_call(target, begun=told.begun.append, **call)
        told.booking = self.callables.book(made, at, told.append)
        return told

    async def arrived(self) -> None:
        """What was booked is known over there."""
        await asyncio.sleep(0)
        await until(lambda: not self.callables._other._timetable._arrivals)

    async def pass_to(self, at: float) -> None:
        """It is so late, and whoever has set the alarm for it is woken."""
        await self.arrived()
        self._clock.now = at
        loop = self.callables._other._loop
        assert loop is not None
        loop.call_soon_threadsafe(self._clock.ring)
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop))
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop))


@pytest.fixture
def desk(callables: Callables, clock: HandClock, make_call: MakeCall) -> Desk:
    return Desk(callables, clock, make_call)


async def test_it_begins_at_its_instant_and_says_when(desk: Desk, callables: Callables, clock: HandClock):
    seen: list[float] = []

    async def it(a: int) -> int:
        seen.append(clock.now)
        clock.now += 0.25
        return a

    callables.register("it", it)
    told = desk.book(100.5, params={"a": 7})
    await desk.pass_to(100.499)
    assert seen == []
    await desk.pass_to(100.501)
    await until(lambda: told)
    assert told == [Outcome(kind="ok", detail={"result": 7})]
    assert told.booking is not None
    assert (seen, told.booking.began, told.booking.ended) == ([100.501], 100.501, 100.751)


async def test_on_a_real_clock_never_before_and_soon_after(make_call: MakeCall):
    clock, late = SystemClock(), list[float]()

    async def it(due: float) -> None:
        late.append(clock.monotonic() - due)

    async with Callables(clock=clock) as callables:
        callables.register("it", it)
        ends = [Told() for _ in range(50)]
        for number, told in enumerate(ends):
            due = clock.monotonic() + 0.002 * number
            assert callables.book(make_call(IT, params={"due": due}), due, told.append)
        await until(lambda: all(ends))
    assert len(late) == 50
    assert min(late) >= 0
    assert sorted(late)[25] < 1  # on a loaded machine; what it is on a quiet one is in docs/performance.md


async def test_what_is_taken_back_is_never_called(desk: Desk, callables: Callables):
    called: list[str] = []

    async def it(name: str) -> None:
        called.append(name)

    callables.register("it", it)
    unwanted, wanted = desk.book(101, params={"name": "unwanted"}), desk.book(101, params={"name": "wanted"})
    assert unwanted.booking is not None
    assert unwanted.booking.take_back()
    await desk.pass_to(101)
    await until(lambda: wanted)
    assert (called, unwanted) == (["wanted"], [])
    assert wanted.booking is not None
    assert not wanted.booking.take_back()


async def test_what_became_another_nodes_meanwhile_is_not_called(desk: Desk, callables: Callables):
    called: list[str] = []

    async def it() -> None:
        called.append("it")

    callables.register("it", it)
    told = desk.book(101, may_begin=lambda: False)
    await desk.pass_to(101)
    await until(lambda: told)
    assert (told, called) == ([None], [])
    assert told.booking is not None
    assert told.booking.began is None


async def test_withdrawn_before_its_instant_it_says_so(desk: Desk, callables: Callables):
    async def it() -> None: ...

    callables.register("it", it)
    told, other = desk.book(101), desk.book(101)
    assert told.booking is not None
    assert told.booking.withdraw() is False
    await desk.pass_to(101)
    await until(lambda: other)
    assert told == []


async def test_withdrawn_while_it_waits_it_is_cancelled_and_untold(desk: Desk, callables: Callables):
    waits = WaitsForEver()
    callables.register("it", waits.it)
    told = desk.book(101)
    await desk.pass_to(101)
    await until(waits.began.is_set)
    assert told.booking is not None
    assert told.booking.withdraw() is None
    await until(waits.cancelled.is_set)
    await asyncio.sleep(0)
    assert told == []


async def test_withdrawn_when_it_has_ended_it_is_told_first(desk: Desk, callables: Callables):
    """A time-out that is over here, and a result that still waits there for others: it has come in time."""

    async def it() -> None: ...

    callables.register("it", it)
    told, follows = desk.book(101), desk.book(101 + GATHER_SECONDS / 2)
    await desk.pass_to(101)
    assert told == []
    assert told.booking is not None
    assert told.booking.withdraw() is None
    assert told == [Outcome(kind="ok")]
    assert follows == []


async def test_results_wait_for_the_next_and_come_home_together(desk: Desk, callables: Callables):
    async def it() -> None: ...

    callables.register("it", it)
    all_told = [desk.book(101 + GATHER_SECONDS / 4 * n) for n in range(3)]
    for number in range(2):
        await desk.pass_to(101 + GATHER_SECONDS / 4 * number)
        assert not any(all_told)
    await desk.pass_to(101 + GATHER_SECONDS / 2)  # nothing follows
    await until(lambda: any(all_told))
    assert all(all_told)


async def test_no_more_than_a_few_wait(desk: Desk, callables: Callables):
    async def it() -> None: ...

    callables.register("it", it)
    all_told = [desk.book(101 + 0.001 * n) for n in range(GATHER + 1)]
    for number in range(GATHER - 1):
        await desk.pass_to(101 + 0.001 * number)
        assert not any(all_told)
    await desk.pass_to(101 + 0.001 * (GATHER - 1))
    await until(lambda: any(all_told))
    assert [len(told) for told in all_told] == [1] * GATHER + [0]


async def test_none_waits_for_what_is_far_or_was_taken_back(desk: Desk, callables: Callables):
    async def it() -> None: ...

    callables.register("it", it)
    first, second = desk.book(101), desk.book(101 + GATHER_SECONDS / 2)
    far = desk.book(101 + GATHER_SECONDS * 2)
    await desk.pass_to(101)
    assert not first
    assert second.booking is not None
    assert second.booking.take_back()
    await desk.pass_to(101 + GATHER_SECONDS / 2)  # where it would have been
    await until(lambda: first)
    assert not second
    assert not far


async def test_they_come_home_when_the_next_are_booked(desk: Desk, callables: Callables):
    async def it() -> None: ...

    callables.register("it", it)
    first, _ = desk.book(101), desk.book(101 + GATHER_SECONDS / 2)
    await desk.pass_to(101)
    assert not first
    desk.book(NEVER)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert first == [Outcome(kind="ok")]


async def test_what_was_not_booked_waits_for_nobody(desk: Desk, callables: Callables, make_call: MakeCall):
    async def it() -> None: ...

    callables.register("it", it)
    first, second = desk.book(101), desk.book(101 + GATHER_SECONDS / 2)
    await desk.pass_to(101)
    assert (await callables.send(make_call(IT))).ok
    assert first
    assert not second


async def test_one_that_takes_longer_is_told_to_have_begun(desk: Desk, callables: Callables):
    go_on = threading.Event()

    async def it() -> None:
        while not go_on.is_set():
            await asyncio.sleep(0)

    callables.register("it", it)
    told = desk.book(101)
    await desk.pass_to(101.25)
    await until(lambda: told.begun)
    assert (told.begun, told) == ([101.25], [])
    go_on.set()
    await until(lambda: told)
    assert len(told.begun) == 1


async def test_one_that_keeps_the_loop_to_itself_hides_nothing(desk: Desk, callables: Callables):
    """It blocks, as an async function should not: it is told to have begun all the same, and results that waited for it
    come home."""
    let_go = threading.Event()

    async def it() -> None: ...

    async def blocks() -> bool:
        return let_go.wait(10)

    callables.register("it", it)
    callables.register("blocks", blocks)
    first = desk.book(101)
    blocking = desk.book(101 + GATHER_SECONDS / 2, FunctionTarget(function="blocks"))
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


async def test_it_has_begun_before_it_logs(desk: Desk, callables: Callables):
    said: list[str] = []

    async def it() -> None:
        logging.getLogger("it").warning("working")

    callables.register("it", it)
    told = Told()
    call = desk._make_call(IT, log=lambda text: said.append(f"logged {len(told.begun)}"), begun=told.begun.append)
    callables.book(call, 101, told.append)
    await desk.pass_to(101)
    await until(lambda: told)
    assert said == ["logged 1"]
    assert len(told.begun) == 1


async def test_an_error_is_a_result(desk: Desk, callables: Callables):
    async def it() -> None:
        raise ValueError("over there")

    callables.register("it", it)
    told = desk.book(101)
    await desk.pass_to(101)
    await until(lambda: told)
    assert told[0] is not None
    assert (told[0].kind, told[0].error) == ("error", "ValueError: over there")


async def test_only_what_runs_on_the_loop_and_can_be_called_is_booked(desk: Desk, callables: Callables):
    async def waits(a: int) -> None: ...

    callables.register("it", waits)
    callables.register("blocks", lambda: None)
    assert isinstance(callables, Timekeeper)
    assert callables.keeps_time_for(IT)
    assert not callables.keeps_time_for(FunctionTarget(function="blocks"))
    assert not callables.keeps_time_for(FunctionTarget(function="unknown"))
    assert desk.book(101, FunctionTarget(function="unknown")).booking is None
    assert desk.book(101, params={"b": 1}).booking is None  # at its instant it says what is wrong
    assert desk.book(101, params={"a": 1}).booking is not None


async def test_without_the_engines_clock_nothing_is_booked(make_call: MakeCall):
    async def it() -> None: ...

    told = Told()
    async with Callables() as callables:
        callables.register("it", it)
        assert not callables.keeps_time_for(IT)
        assert callables.book(make_call(IT), 101, told.append) is None


async def test_leaving_forgets_what_is_booked(clock: HandClock, make_call: MakeCall):
    called: list[str] = []

    async def it() -> None:
        called.append("it")

    told = Told()
    async with Callables(clock=clock) as callables:
        callables.register("it", it)
        callables.book(make_call(IT), 101, told.append)
        await asyncio.sleep(0)
    assert clock.closed
    assert (told, called) == ([], [])
