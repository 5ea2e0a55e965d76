"""The Timer, step by step: wakes for instants, hints and polls, and for nothing else."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable

import pytest

from onthedot.clock import FakeClock
from onthedot.engine.claiming.due_heap import DueHeap
from onthedot.engine.claiming.timer import MIN_GAP, Timer
from onthedot.engine.mailbox import Mailbox
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.lease import Lease
from onthedot.engine.messages import LOOK, TICK, DispatcherMessage
from onthedot.model.run import ClaimedRun
from tests.engine.making import claimed


class Bench:
    def __init__(self, clock: FakeClock, *, poll: float = 100.0, granularity: float = 1000.0) -> None:
        self.clock = clock
        self.steps: list[asyncio.Task[None]] = []
        self.ticked: list[tuple[float, ClaimedRun | None]] = []
        self.time = DatabaseClock(clock)
        self.time.observe(clock.now_ms(), clock.monotonic(), clock.monotonic())
        self.lease = Lease(clock, 5.0, renewed=lambda: self.timer.wake())
        self.lease.renew(clock.monotonic())
        self.due_heap = DueHeap(earlier=lambda: self.timer.wake())
        self.mailbox: Mailbox[DispatcherMessage] = Mailbox(10)
        self.timer = Timer(
            clock=clock,
            time=self.time,
            due_heap=self.due_heap,
            lease=self.lease,
            scheduler=self.mailbox,
            tick=lambda: self.mailbox.merge(TICK),
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
        assert self.mailbox.take_all() == [LOOK]
        await self.clock.advance(MIN_GAP)

    async def stepping(self) -> asyncio.Task[None]:
        """What comes by the alarm comes on the alarm's own turn: the step goes on until somebody rings."""
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
    await bench.timer.step()  # woken because the heap has a new head: no reason to speak
    step = await bench.stepping()
    await fake_clock.advance(1.499)
    assert not step.done()
    assert bench.mailbox.take_all() == []
    await fake_clock.advance(0.001)
    assert step.done()
    assert bench.mailbox.take_all() == [TICK]


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
    assert bench.mailbox.take_all() == [TICK]


async def test_waking_early_gives_no_tick(bench, fake_clock):
    """uvloop rounds to the millisecond and was seen 0.45 ms early: the clock is looked at again."""
    bench.due_in(1000)
    await bench.timer.step()
    step = await bench.stepping()
    await fake_clock.advance(0.99955)
    bench.timer.wake()
    await fake_clock.settle()
    assert step.done()
    assert bench.mailbox.take_all() == []
    step = await bench.stepping()
    await fake_clock.advance(0.00045)
    assert step.done()
    assert bench.mailbox.take_all() == [TICK]


async def test_a_hint_makes_it_look_at_once(bench, fake_clock):
    step = await bench.stepping()
    assert not step.done()
    bench.timer.look()
    await fake_clock.settle()
    assert step.done()
    assert bench.mailbox.take_all() == [LOOK]


async def test_polls_at_random_gaps_within_the_interval(fake_clock):
    bench = Bench(fake_clock, poll=1.0)
    await bench.first_look()
    gaps = []
    await bench.stepping()
    for _ in range(20):
        before = fake_clock.monotonic()
        while not bench.mailbox:
            await fake_clock.advance(0.01)
        assert bench.mailbox.take_all() == [LOOK]
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
    assert sorted(set(looked_at)) == [pytest.approx(MIN_GAP + 1.0), pytest.approx(MIN_GAP + 2.0)]
    assert bench.mailbox.take_all() == []  # awake, and no reason to speak


async def test_an_expected_instant_is_looked_for(bench, fake_clock):
    bench.timer.expect(fake_clock.now_ms() + 700)
    bench.timer.expect(fake_clock.now_ms() + 900)
    await bench.timer.step()
    await bench.stepping()
    await fake_clock.advance(0.699)
    assert bench.mailbox.take_all() == []
    await fake_clock.advance(0.001)
    assert bench.mailbox.take_all() == [LOOK]


async def test_what_a_claim_says_takes_the_place_of_what_the_one_before_said(bench, fake_clock):
    now = fake_clock.now_ms()
    bench.timer.expect_next("webhook", now + 700)
    bench.timer.expect_next("function", now + 1200)
    bench.timer.expect_next("webhook", now + 900)
    await bench.timer.step()
    await bench.stepping()
    await fake_clock.advance(0.899)
    assert bench.mailbox.take_all() == []
    await fake_clock.advance(0.001)
    assert bench.mailbox.take_all() == [LOOK]
    await fake_clock.advance(0.299)
    assert bench.mailbox.take_all() == []
    await fake_clock.advance(0.001)
    assert bench.mailbox.take_all() == [LOOK]


async def test_but_not_of_a_retry_that_is_expected(bench, fake_clock):
    bench.timer.expect(fake_clock.now_ms() + 700)
    bench.timer.expect_next("webhook", fake_clock.now_ms() + 900)
    await bench.timer.step()
    await bench.stepping()
    await fake_clock.advance(0.7)
    assert bench.mailbox.take_all() == [LOOK]


async def test_looks_within_a_given_time_if_the_poll_is_further_off(bench, fake_clock):
    bench.timer.look_within(0.05)
    bench.timer.look_within(10)
    await bench.timer.step()
    await bench.stepping()
    await fake_clock.advance(0.05)
    assert bench.mailbox.take_all() == [LOOK]


async def test_no_tick_while_the_lease_forbids_to_start(bench, fake_clock):
    bench.due_in(4500)
    await bench.timer.step()
    step = await bench.stepping()
    await fake_clock.advance(4.6)  # trusted for 4 s
    assert not step.done()
    assert bench.mailbox.take_all() == []
    bench.lease.renew(fake_clock.monotonic())
    await fake_clock.settle()
    assert step.done()
    assert bench.mailbox.take_all() == [TICK]


async def test_ticks_merge_while_the_scheduler_is_busy(bench, fake_clock):
    bench.due_in(0)
    for _ in range(3):
        await bench.timer.step()
    assert bench.mailbox.take_all() == [TICK]


async def test_a_stream_of_hints_is_bundled(bench, fake_clock):
    bench.timer.look()
    await bench.timer.step()
    assert bench.mailbox.take_all() == [LOOK]
    for _ in range(5):
        bench.timer.look()
    await bench.timer.step()  # awake, but it has looked just now
    assert bench.mailbox.take_all() == []
    step = await bench.stepping()
    assert not step.done()
    await fake_clock.advance(MIN_GAP)
    assert bench.mailbox.take_all() == [LOOK]


async def test_one_instant_after_the_other_without_a_step_in_between(bench, fake_clock):
    for ms in (100, 110, 120):
        bench.due_in(ms)
    bench.timer._tick = lambda: bench.ticked.append((fake_clock.monotonic(), bench.due_heap.pop(bench.time.now_us())))
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
    assert bench.mailbox.take_all() == []


async def test_what_fails_on_the_alarm_s_turn_comes_out_of_the_step(bench, fake_clock):
    def broken() -> None:
        raise ValueError("broken")

    bench.timer._tick = broken
    bench.due_in(100)
    await bench.timer.step()
    step = await bench.stepping()
    await fake_clock.advance(0.1)
    with pytest.raises(ValueError, match="broken"):
        await step


async def test_it_tells_when_the_next_fires(bench, fake_clock):
    assert bench.timer.next_tick() is None
    bench.due_in(100)
    assert bench.timer.next_tick() == pytest.approx(0.1)
