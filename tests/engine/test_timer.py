"""The Timer, step by step: wakes for instants, hints and polls, and for nothing else."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable

import pytest

from onthedot.clock import FakeClock
from onthedot.engine.claiming.due_heap import DueHeap
from onthedot.engine.claiming.timer import Timer
from onthedot.engine.look_times import LookTimes, NextLook
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.lease import Lease
from onthedot.engine.tuning import LOOK_GAP
from onthedot.model.run import ClaimedRun
from tests.engine.making import claimed


class Called:
    """In place of the Dispatcher: what it was called for, each once until somebody looks."""

    def __init__(self) -> None:
        self._calls: list[str] = []
        self.ticks = 0

    def tick(self) -> None:
        self.ticks += 1
        self._call("tick")

    def look(self) -> None:
        self._call("look")

    def _call(self, what: str) -> None:
        if what not in self._calls:
            self._calls.append(what)

    def __bool__(self) -> bool:
        return bool(self._calls)

    def take_all(self) -> list[str]:
        calls, self._calls = self._calls, []
        return calls


class Bench:
    def __init__(self, clock: FakeClock, *, poll: float = 100.0, granularity: float = 1000.0) -> None:
        self.clock = clock
        self.steps: list[asyncio.Task[None]] = []
        self.ticked: list[tuple[float, ClaimedRun | None]] = []
        self.time = DatabaseClock(clock)
        self.time.observe(clock.now_ms(), clock.monotonic(), clock.monotonic())
        self.look_times = LookTimes(clock)
        self.lease = Lease(clock, 5.0, wake=self.look_times.wake)
        self.lease.renew(clock.monotonic())
        self.due_heap = DueHeap(self.look_times.wake)
        self.called = Called()
        self.timer = Timer(
            clock=clock,
            time=self.time,
            due_heap=self.due_heap,
            lease=self.lease,
            look_times=self.look_times,
            dispatcher=self.called,
            rng=random.Random(1),
            poll=poll,
            granularity=granularity,
        )

    def due_in(self, ms: int) -> None:
        at = self.clock.now_ms() + ms
        self.due_heap.push(claimed(f"1-{at}", due_at=at), at)

    async def first_look(self) -> None:
        """A timer looks as soon as it starts."""
        await self.timer.step()
        assert self.called.take_all() == ["look"]
        await self.clock.advance(LOOK_GAP)

    async def stepping(self) -> asyncio.Task[None]:
        """What comes by the alarm comes on the alarm's own turn: the step goes on until it expires."""
        step = asyncio.ensure_future(self.timer.step())
        self.steps.append(step)
        await self.clock.settle()
        return step

    async def end(self) -> None:
        for step in self.steps:
            step.cancel()
        await asyncio.gather(*self.steps, return_exceptions=True)


class Looked(DatabaseClock):
    """Tells when somebody asks it."""

    def __init__(self, clock: FakeClock, told: Callable[[], None]) -> None:
        super().__init__(clock)
        self.observe(clock.now_ms(), clock.monotonic(), clock.monotonic())
        self._told = told

    def at_us(self, monotonic: float) -> int:
        self._told()
        return super().at_us(monotonic)


@pytest.fixture
async def bench(fake_clock: FakeClock) -> AsyncIterator[Bench]:
    bench = Bench(fake_clock)
    await bench.first_look()
    yield bench
    await bench.end()


async def test_ticks_at_the_instant_and_not_before(bench, fake_clock):
    bench.due_in(1500)
    await bench.timer.step()  # woken because the heap has a new head: no reason to call
    step = await bench.stepping()
    await fake_clock.advance(1.499)
    assert not step.done()
    assert bench.called.take_all() == []
    await fake_clock.advance(0.001)
    assert step.done()
    assert bench.called.take_all() == ["tick"]


async def test_a_new_earlier_run_wakes_it(bench, fake_clock):
    bench.due_in(60_000)
    await bench.timer.step()
    step = await bench.stepping()
    bench.due_in(100)
    await fake_clock.settle()
    assert step.done()
    step = await bench.stepping()
    await fake_clock.advance(0.1)
    assert step.done()
    assert bench.called.take_all() == ["tick"]


async def test_waking_early_gives_no_tick(bench, fake_clock):
    """uvloop rounds to the millisecond and was seen 0.45 ms early: the clock is looked at again."""
    bench.due_in(1000)
    await bench.timer.step()
    step = await bench.stepping()
    await fake_clock.advance(0.99955)
    bench.look_times.wake.set()
    await fake_clock.settle()
    assert step.done()
    assert bench.called.take_all() == []
    step = await bench.stepping()
    await fake_clock.advance(0.00045)
    assert step.done()
    assert bench.called.take_all() == ["tick"]


async def test_a_hint_makes_it_look_at_once(bench, fake_clock):
    step = await bench.stepping()
    assert not step.done()
    bench.look_times.ask()
    await fake_clock.settle()
    assert step.done()
    assert bench.called.take_all() == ["look"]


async def test_polls_at_random_gaps_within_the_interval(fake_clock):
    bench = Bench(fake_clock, poll=1.0)
    await bench.first_look()
    gaps = []
    await bench.stepping()
    for _ in range(20):
        before = fake_clock.monotonic()
        while not bench.called:
            await fake_clock.advance(0.01)
        assert bench.called.take_all() == ["look"]
        gaps.append(round(fake_clock.monotonic() - before, 2))
    await bench.end()
    assert all(0.8 <= gap <= 1.01 for gap in gaps)
    assert len(set(gaps)) > 10


async def test_the_granularity_is_the_longest_sleep(fake_clock):
    bench = Bench(fake_clock, granularity=1.0)
    await bench.first_look()
    await bench.stepping()
    looked_at = []
    bench.timer._time = Looked(fake_clock, lambda: looked_at.append(fake_clock.monotonic()))
    await fake_clock.advance(2.0)
    await bench.end()
    assert sorted(set(looked_at)) == [pytest.approx(LOOK_GAP + 1.0), pytest.approx(LOOK_GAP + 2.0)]
    assert bench.called.take_all() == []  # awake, and no reason to call


async def test_an_expected_instant_is_looked_for(bench, fake_clock):
    bench.look_times.retry_at(fake_clock.now_ms() + 700)
    bench.look_times.retry_at(fake_clock.now_ms() + 900)
    await bench.timer.step()
    await bench.stepping()
    await fake_clock.advance(0.699)
    assert bench.called.take_all() == []
    await fake_clock.advance(0.001)
    assert bench.called.take_all() == ["look"]


async def test_what_a_claim_says_takes_the_place_of_what_the_one_before_said(bench, fake_clock):
    now = fake_clock.now_ms()
    bench.look_times.after_claim("webhook", NextLook(at_ms=now + 700))
    bench.look_times.after_claim("function", NextLook(at_ms=now + 1200))
    bench.look_times.after_claim("webhook", NextLook(at_ms=now + 900))
    await bench.timer.step()
    await bench.stepping()
    await fake_clock.advance(0.899)
    assert bench.called.take_all() == []
    await fake_clock.advance(0.001)
    assert bench.called.take_all() == ["look"]
    await fake_clock.advance(0.299)
    assert bench.called.take_all() == []
    await fake_clock.advance(0.001)
    assert bench.called.take_all() == ["look"]


async def test_but_not_of_a_retry_that_is_expected(bench, fake_clock):
    bench.look_times.retry_at(fake_clock.now_ms() + 700)
    bench.look_times.after_claim("webhook", NextLook(at_ms=fake_clock.now_ms() + 900))
    await bench.timer.step()
    await bench.stepping()
    await fake_clock.advance(0.7)
    assert bench.called.take_all() == ["look"]


async def test_looks_within_a_given_time_if_the_poll_is_further_off(bench, fake_clock):
    bench.look_times.look_within(0.05)
    bench.look_times.look_within(10)
    await bench.timer.step()
    await bench.stepping()
    await fake_clock.advance(0.05)
    assert bench.called.take_all() == ["look"]


async def test_no_tick_while_the_lease_forbids_to_start(bench, fake_clock):
    bench.due_in(4500)
    await bench.timer.step()
    step = await bench.stepping()
    await fake_clock.advance(4.6)  # trusted for 4 s
    assert not step.done()
    assert bench.called.take_all() == []
    bench.lease.renew(fake_clock.monotonic())
    await fake_clock.settle()
    assert step.done()
    assert bench.called.take_all() == ["tick"]


async def test_ticks_until_nothing_is_due(bench, fake_clock):
    """The Dispatcher starts no more than a portion at a time."""
    bench.due_in(0)
    for _ in range(3):
        await bench.timer.step()
    assert bench.called.ticks == 3


async def test_a_stream_of_hints_is_bundled(bench, fake_clock):
    bench.look_times.ask()
    await bench.timer.step()
    assert bench.called.take_all() == ["look"]
    for _ in range(5):
        bench.look_times.ask()
    await bench.timer.step()  # awake, but it has looked just now
    assert bench.called.take_all() == []
    step = await bench.stepping()
    assert not step.done()
    await fake_clock.advance(LOOK_GAP)
    assert bench.called.take_all() == ["look"]


async def test_one_instant_after_the_other_without_a_step_in_between(bench, fake_clock):
    for ms in (100, 110, 120):
        bench.due_in(ms)
    bench.called.tick = lambda: bench.ticked.append((fake_clock.monotonic(), bench.due_heap.pop(bench.time.now_us())))
    await bench.timer.step()
    step = await bench.stepping()
    began = fake_clock.monotonic()
    await fake_clock.advance(0.2)
    assert not step.done()
    assert [round(at - began, 6) for at, run in bench.ticked if run is not None] == [0.1, 0.11, 0.12]


async def test_told_to_end_it_fires_nothing_any_more(bench, fake_clock):
    """A node that was declared lost, or stops, must not begin a run because an alarm was still set."""
    bench.due_in(100)
    await bench.timer.step()
    step = await bench.stepping()
    step.cancel()
    await fake_clock.advance(1)
    assert step.cancelled()
    assert bench.called.take_all() == []


async def test_what_fails_on_the_alarm_s_turn_comes_out_of_the_step(bench, fake_clock):
    def broken() -> None:
        raise ValueError("broken")

    bench.called.tick = broken
    bench.due_in(100)
    await bench.timer.step()
    step = await bench.stepping()
    await fake_clock.advance(0.1)
    with pytest.raises(ValueError, match="broken"):
        await step
