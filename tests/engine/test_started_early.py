"""Runs that are started before their instant, because their kind of target keeps time itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onthedot.clock import FakeClock
from onthedot.engine.messages import OrdersRead, Return
from onthedot.engine.tuning import EARLY_BY_MS, EARLY_FROM_MS
from onthedot.model.duration import Duration
from onthedot.model.targets import FunctionTarget
from onthedot.store import Finished, Order
from tests.engine import test_dispatcher, test_monitor
from tests.engine.making import FUNCTION, OK, Desk, Started, claimed, stop

SYNC = FunctionTarget(function="reports:sync")


def keeps_time(target: Any) -> bool:
    return target is not SYNC


# what is started early, and when


@pytest.fixture
def bench(fake_clock: FakeClock) -> test_dispatcher.Bench:
    bench = test_dispatcher.Bench(fake_clock, processes=100, next_job_count=1000)
    bench.store.script("claim", *[bench.claim() for _ in range(20)])
    return bench


@pytest.fixture
def desk(bench: test_dispatcher.Bench) -> Desk:
    return Desk(bench.sender, FunctionTarget, keeps_time=keeps_time)


async def tick(bench: test_dispatcher.Bench, ms: int) -> None:
    """So late after the beginning, and the Timer says so."""
    await bench.clock.advance((bench.now + ms - bench.clock.now_ms()) / 1000)
    bench.dispatcher.tick()
    await bench.clock.settle()


async def test_it_is_started_shortly_before_its_instant(bench, desk):
    bench.take(bench.run("1-1", due_in=1000, target=FUNCTION))
    assert bench.dispatcher.due_heap.head == bench.now + 1000 - EARLY_BY_MS  # for that the Timer wakes, at the latest
    await tick(bench, 1000 - EARLY_FROM_MS - 1)
    assert desk.names == []
    await tick(bench, 1000 - EARLY_BY_MS)
    assert desk.names == ["1-1"]
    assert desk.calls[0].at == pytest.approx(1.0, abs=2e-6)
    assert desk.calls[0].at >= 1.0


async def test_with_it_those_that_come_soon_after_it(bench, desk):
    dues = [1000, 1010, 1000 + EARLY_FROM_MS - EARLY_BY_MS, 1000 + EARLY_FROM_MS - EARLY_BY_MS + 1]
    bench.take(*(bench.run(f"{n}-1", due_in=due, target=FUNCTION) for n, due in enumerate(dues, 1)))
    await tick(bench, 1000 - EARLY_BY_MS)
    assert desk.names == ["1-1", "2-1", "3-1"]
    assert bench.dispatcher.due_heap.head == bench.now + dues[-1] - EARLY_BY_MS


async def test_another_kind_of_target_between_them_fires_at_its_own_instant(bench, desk):
    bench.take(
        bench.run("1-1", due_in=1000, target=FUNCTION),
        bench.run("2-1", due_in=1000),
        bench.run("3-1", due_in=1020, target=FUNCTION),
    )
    await tick(bench, 1000 - EARLY_BY_MS)
    assert desk.names == ["1-1"]  # the next one to leave before its time comes behind the webhook
    assert bench.sender.sent == []
    await tick(bench, 1000)
    assert bench.sender.sent == ["2-1"]
    assert desk.names == ["1-1", "3-1"]


@pytest.mark.parametrize(
    "options",
    [
        {"delivery": "at_most_once"},
        {"overlap": "skip"},
        {"expires_in": Duration(5000)},
        {"target": SYNC},
    ],
)
async def test_these_are_not_started_early(bench, desk, options):
    bench.take(bench.run("1-1", due_in=1000, **{"target": FUNCTION, **options}))
    assert bench.dispatcher.due_heap.head == bench.now + 1000
    await tick(bench, 999)
    assert desk.names == []
    await tick(bench, 1000)
    await bench.wiring.gate.step() if options.keys() & {"delivery", "expires_in"} else None
    assert desk.names == ["1-1"]
    assert desk.calls[0].at == bench.clock.monotonic()  # now, and no earlier


async def test_what_is_due_is_started_at_once(bench, desk):
    bench.take(bench.run("1-1", target=FUNCTION))
    assert (desk.names, desk.calls[0].at) == (["1-1"], bench.clock.monotonic())


async def test_slots_are_taken_early_only_while_there_are_plenty(fake_clock):
    bench = test_dispatcher.Bench(fake_clock, processes=4, next_job_count=100)
    desk = Desk(bench.sender, FunctionTarget, keeps_time=keeps_time)
    bench.take(*(bench.run(f"{n}-1", due_in=1000, target=FUNCTION) for n in range(4)))
    await tick(bench, 1000 - EARLY_BY_MS)
    assert desk.names == ["0-1", "1-1"]
    assert bench.dispatcher.due_heap.head == bench.now + 1000
    await tick(bench, 1000)
    assert desk.names == ["0-1", "1-1", "2-1", "3-1"]
    assert [started.at for started in desk.calls[2:]] == [bench.clock.monotonic()] * 2


async def test_without_a_lease_nothing_is_started(bench, desk):
    bench.take(bench.run("1-1", due_in=20_000, target=FUNCTION))
    await tick(bench, 20_000 - EARLY_BY_MS)
    assert desk.names == []


# orders


async def test_what_is_recalled_before_its_instant_goes_back(bench, desk):
    bench.take(bench.run("1-1", due_in=1000, target=FUNCTION))
    await tick(bench, 1000 - EARLY_BY_MS)
    bench.dispatcher.handle(OrdersRead([Order(run_id="1-1", token=1, what="recall")]))
    assert desk.calls[0].withdrawn
    assert bench.written == [Return("1-1", 1)]
    assert bench.dispatcher.running == {}
    assert bench.slots.pools["function"].running == 0


async def test_what_has_begun_is_not_recalled(bench, desk):
    bench.take(bench.run("1-1", due_in=1000, target=FUNCTION))
    await tick(bench, 1000 - EARLY_BY_MS)
    desk.calls[0].begin(told=False)
    bench.dispatcher.handle(OrdersRead([Order(run_id="1-1", token=1, what="recall")]))
    assert bench.written == []
    desk.calls[0].end(at=1.2)
    desk.calls[0].tell()
    (result,) = bench.written
    assert (result.outcome, result.duration_ms) == (OK, 200)


async def test_an_order_for_another_claim_of_it_takes_nothing_back(bench, desk):
    bench.take(bench.run("1-1", due_in=1000, target=FUNCTION, token=2))
    await tick(bench, 1000 - EARLY_BY_MS)
    bench.dispatcher.handle(OrdersRead([Order(run_id="1-1", token=1, what="recall")]))
    assert not desk.calls[0].withdrawn


@pytest.mark.parametrize("begun", [False, True])
async def test_a_cancel_reaches_it_before_and_after(bench, desk, begun):
    bench.take(bench.run("1-1", due_in=1000, target=FUNCTION))
    await tick(bench, 1000 - EARLY_BY_MS)
    if begun:
        await tick(bench, 1000)
        desk.calls[0].begin(told=False)
    bench.dispatcher.handle(OrdersRead([Order(run_id="1-1", token=1, what="cancel")]))
    (result,) = bench.written
    assert result.outcome.kind == "cancelled"
    assert result.started_at == (bench.now + 1000 if begun else None)
    assert (desk.calls[0].withdrawn, desk.calls[0].stopped) == (not begun, begun)


async def test_what_became_another_nodes_is_dropped(bench, desk):
    bench.take(bench.run("1-1", due_in=1000, target=FUNCTION))
    await tick(bench, 1000 - EARLY_BY_MS)
    bench.dispatcher.handle(OrdersRead([Order(run_id="1-1", token=1, what="gone")]))
    assert desk.calls[0].withdrawn
    assert bench.written == []
    assert not bench.wiring.owned.has("1-1", 1)


async def test_closing_gives_back_what_has_not_begun(bench, desk):
    bench.take(*(bench.run(f"{n}-1", due_in=1000, target=FUNCTION) for n in (1, 2)))
    await tick(bench, 1000 - EARLY_BY_MS)
    desk.calls[0].begin(told=False)
    await bench.dispatcher.close(1.0)
    assert bench.written == [Return("2-1", 1)]
    assert list(bench.dispatcher.running) == ["1-1"]


# one run alone


class Alone(test_monitor.Bench):
    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.desk = Desk(self.sender, FunctionTarget, keeps_time=keeps_time)

    async def early(self, due_in: int = 50, **options: Any) -> Started:
        self.started = await self.start(claimed("1-1", due_at=self.now + due_in, target=FUNCTION, **options))
        return self.desk.calls[-1]


@pytest.fixture
def alone(fake_clock: FakeClock) -> Alone:
    return Alone(fake_clock)


async def test_times_are_those_of_the_call_whenever_they_are_told(alone, fake_clock):
    call = await alone.early()
    assert alone.started.started_at is None
    call.begin(0.0537, told=False)
    call.end(at=0.0741)
    await fake_clock.advance(0.15)
    call.tell()
    result = alone.result()
    assert (result.started_at, result.finished_at) == (alone.now + 53, alone.now + 74)
    assert (result.lateness_ms, result.duration_ms) == (3, 20)
    assert alone.started.seconds == pytest.approx(0.0204)
    assert alone.lateness.percentile(0.5) == 3
    assert alone.ended == [alone.started]
    assert alone.started._handle is None


async def test_it_does_not_start_before_it_is_due_by_whatever_the_database_says_meanwhile(alone, fake_clock):
    call = await alone.early()
    alone.context.time.observe_us((alone.now - 4) * 1000, 0.0, 0.0)  # its clock was set back
    call.begin(told=False)
    call.end(at=0.06)
    call.tell()
    result = alone.result()
    assert (result.started_at, result.finished_at, result.lateness_ms) == (alone.now + 50, alone.now + 56, 0)


async def test_one_that_is_told_to_have_begun_has_started(alone, fake_clock):
    call = await alone.early()
    call.begin(0.052)
    call.call.begun(0.052)
    assert alone.started.started_at == alone.now + 52
    call.call.log("working")
    call.end(at=0.4)
    call.tell()
    result = alone.result()
    assert (result.lateness_ms, result.duration_ms) == (2, 348)
    assert result.log is not None
    assert "working" in result.log


async def test_what_may_not_begin_goes_back(alone, fake_clock):
    call = await alone.early()
    assert call.call.may_begin()
    await fake_clock.advance(12)  # frozen, and nobody beat meanwhile
    assert not call.call.may_begin()
    call.tell()
    assert alone.recorder.take_all() == [Return("1-1", 1)]
    assert alone.started.seconds is None


async def watching(alone: Alone) -> asyncio.Task[None]:
    async def watch() -> None:
        while True:
            await alone.deadlines.step()

    return asyncio.ensure_future(watch())


async def test_the_timeout_counts_from_the_instant(alone, fake_clock):
    watch = await watching(alone)
    call = await alone.early(timeout=Duration(1000))
    call.begin(told=False)
    await fake_clock.advance(1.049)
    assert alone.recorder.take_all() == []
    await fake_clock.advance(0.002)
    result = alone.result()
    assert (result.outcome.kind, result.started_at, result.duration_ms) == ("timeout", alone.now + 50, 1000)
    assert call.stopped
    watch.cancel()


async def test_the_timeout_counts_from_when_it_began_once_that_is_told(alone, fake_clock):
    watch = await watching(alone)
    call = await alone.early(timeout=Duration(1000))
    call.begin(0.4, told=False)
    await fake_clock.advance(0.5)
    call.call.begun(0.4)
    await fake_clock.advance(0.899)
    assert alone.recorder.take_all() == []
    await fake_clock.advance(0.002)
    result = alone.result()
    assert (result.outcome.kind, result.started_at) == ("timeout", alone.now + 400)
    watch.cancel()


async def test_what_ended_in_time_has_not_timed_out_though_nobody_was_told(alone, fake_clock):
    watch = await watching(alone)
    call = await alone.early(timeout=Duration(20))
    call.begin(told=False)
    call.end(at=0.060)
    await fake_clock.advance(0.2)
    result = alone.result()
    assert (result.outcome, result.duration_ms) == (OK, 10)
    assert alone.ended == [alone.started]
    watch.cancel()


async def test_what_never_began_has_not_timed_out_either(alone, fake_clock):
    """The loop over there was somebody else's for all that time."""
    watch = await watching(alone)
    call = await alone.early(timeout=Duration(20))
    await fake_clock.advance(0.2)
    assert call.withdrawn
    assert alone.recorder.take_all() == [Return("1-1", 1)]
    watch.cancel()


@pytest.mark.parametrize("begun", [False, True])
async def test_a_node_that_stops_interrupts_what_has_begun_and_gives_back_the_rest(alone, fake_clock, begun):
    call = await alone.early()
    await fake_clock.advance(0.05)
    if begun:
        call.begin(0.05, told=False)
    stop(alone.started, "interrupted")
    (told,) = alone.recorder.take_all()
    if begun:
        assert isinstance(told, Finished)
        assert (told.outcome.kind, told.started_at) == ("interrupted", alone.now + 50)
    else:
        assert told == Return("1-1", 1)


async def test_what_is_told_twice_counts_once(alone):
    call = await alone.early()
    call.begin(told=False)
    call.end(at=0.06)
    call.tell()
    call.tell()
    alone.started.recall()
    stop(alone.started, "cancelled")
    assert alone.result().outcome == OK
    assert alone.ended == [alone.started]
