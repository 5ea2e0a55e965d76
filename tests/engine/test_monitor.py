"""The Monitor, alone with one run: timeout, log, execution time, every way to be stopped."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from onthedot.clock import FakeClock
from onthedot.engine.claiming.capacity import Capacity
from onthedot.engine.mailbox import Mailbox
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.membership.lateness import Lateness
from onthedot.engine.membership.lease import Lease
from onthedot.engine.messages import Return
from onthedot.engine.recording.owned_runs import OwnedRuns
from onthedot.engine.running.deadlines import Deadlines
from onthedot.engine.running.live_logs import LiveLogWriter
from onthedot.engine.running.monitor import Monitor
from onthedot.engine.running.run_context import RunContext
from onthedot.engine.settings import EngineSettings
from onthedot.model.duration import Duration
from onthedot.model.run import Attempt, ClaimedRun, Outcome
from onthedot.store import Finished
from onthedot.targets import Call, NotBegun
from tests.engine.making import FAILED, FUNCTION, OK, FakeSender, claimed
from tests.engine.scripted import ScriptedStore


class Bench:
    def __init__(self, clock: FakeClock, *, mailbox: int = 10) -> None:
        self.clock = clock
        self.now = clock.now_ms()
        self.sender = FakeSender(now=clock.now_ms)
        self.recorder: Mailbox[Finished | Return] = Mailbox(mailbox)
        self.owned = OwnedRuns()
        self.lease = Lease(clock, 5.0)
        self.lease.renew(clock.monotonic())
        self.lateness = Lateness(clock)
        self.deadlines = Deadlines(clock)
        self.ended: list[Monitor] = []
        self.crashes: list[BaseException] = []
        self.lacked: list[str] = []
        time = DatabaseClock(clock)
        time.observe(clock.now_ms(), clock.monotonic(), clock.monotonic())
        self.around = RunContext(
            clock=clock,
            time=time,
            lease=self.lease,
            deadlines=self.deadlines,
            sender=self.sender,
            direct=self.sender.direct,
            timekeepers=self.sender.timekeepers,
            recorder=self.recorder,
            owned=self.owned,
            lateness=self.lateness,
            logs=None,
            live_logs=LiveLogWriter(store=ScriptedStore(), clock=clock, health=StoreHealth()),
            default_timeout=lambda target: target.timeout_by(EngineSettings()),
            crashed=self.crashes.append,
            lacks=lambda pool, what: self.lacked.append(what),
            now_ms=time.now_ms,
            rng=random.Random(1),
        )
        self.pool = Capacity(["webhook"], capacities={}, default=10, hold_most=10).pools["webhook"]

    async def start(self, run: ClaimedRun) -> Monitor:
        self.owned.add(run.id, run.token)
        monitor = Monitor(run, self.pool, self.around, self.ended.append)
        monitor.start()
        await self.clock.settle()
        return monitor

    def result(self) -> Finished:
        (result,) = self.recorder.take_all()
        assert isinstance(result, Finished)
        return result


@pytest.fixture
def bench(fake_clock: FakeClock) -> Bench:
    return Bench(fake_clock)


async def test_a_run_is_sent_and_its_outcome_reported(bench):
    run = claimed("1-1", due_at=bench.now, token=4, target=FUNCTION, key="nightly")
    monitor = await bench.start(run)
    call = bench.sender.calls[0]
    assert (call.run_id, call.attempt, call.key, call.slot, call.target) == ("1-1", 4, "nightly", bench.now, FUNCTION)
    result = bench.result()
    assert (result.run, result.outcome, result.started_at) == (run, OK, bench.now)
    assert bench.ended == [monitor]
    assert bench.owned.has("1-1", 4)  # until it is written


async def test_execution_time_and_lateness_are_measured(bench, fake_clock):
    bench.sender.hold = asyncio.Event()
    await fake_clock.advance(0.040)
    await bench.start(claimed(due_at=bench.now, target=FUNCTION))
    await fake_clock.advance(1.250)
    bench.sender.hold.set()
    await fake_clock.settle()
    result = bench.result()
    assert (result.lateness_ms, result.duration_ms) == (40, 1250)
    assert (result.started_at, result.finished_at) == (bench.now + 40, bench.now + 1290)
    assert bench.lateness.percentile(0.5) == 40


@pytest.mark.parametrize(("outcome", "tries"), [("error", 1), ("interrupted", 0)])
async def test_a_retry_is_not_late_because_the_first_try_failed(bench, fake_clock, outcome, tries):
    first = Attempt(attempt=1, node="n", started_at=bench.now + 3, finished_at=bench.now + 9, outcome=outcome)
    await fake_clock.advance(60)
    bench.lease.renew(fake_clock.monotonic())
    await bench.start(claimed(due_at=bench.now, token=2, tries=tries, attempts=[first]))
    assert bench.result().lateness_ms == 3
    assert bench.lateness.percentile(0.5) is None


async def test_never_sent_before_its_instant(bench, fake_clock):
    """The instant is looked at again right before the send, whoever thought that it had come."""
    await bench.start(claimed(due_at=bench.now + 7))
    await fake_clock.advance(0.006)
    assert bench.sender.calls == []
    await fake_clock.advance(0.001)
    assert bench.sender.sent_at == [bench.now + 7]


@pytest.mark.parametrize(
    ("policy", "target", "seconds"),
    [({}, None, 3.0), ({"timeout": Duration(500)}, None, 0.5), ({"timeout": Duration(60_000)}, FUNCTION, 60.0)],
)
async def test_the_timeout_ends_what_takes_too_long(bench, fake_clock, policy, target, seconds):
    bench.sender.hold = asyncio.Event()
    run = claimed(due_at=bench.now, **({"target": target} if target else {}), **policy)
    await bench.start(run)
    assert bench.sender.calls[0].timeout == seconds
    await bench.deadlines.step()  # woken by the new deadline
    step = asyncio.ensure_future(bench.deadlines.step())
    await fake_clock.advance(seconds - 0.001)
    assert len(bench.recorder) == 0
    await fake_clock.advance(0.001)
    assert step.done()
    result = bench.result()
    assert (result.outcome.kind, result.outcome.retryable) == ("timeout", True)
    assert result.outcome.error == f"timed out after {seconds:g} s"
    assert result.duration_ms == round(seconds * 1000)
    assert bench.sender.cancelled == [run.id]


async def test_a_function_may_take_as_long_as_it_takes(bench, fake_clock):
    bench.sender.hold = asyncio.Event()
    await bench.start(claimed(due_at=bench.now, target=FUNCTION))
    await fake_clock.advance(86_400)
    assert bench.sender.calls[0].timeout is None
    assert len(bench.recorder) == 0
    bench.sender.hold.set()
    await fake_clock.settle()
    assert bench.result().outcome == OK


async def test_output_is_collected_for_the_store(bench):
    bench.sender.says = ["one\n", "two\n"]
    await bench.start(claimed(due_at=bench.now, target=FUNCTION))
    assert bench.result().log == "one\ntwo\n"


async def test_a_failure_is_reported_as_it_is(bench):
    bench.sender.outcomes = [FAILED]
    await bench.start(claimed(due_at=bench.now))
    assert bench.result().outcome == FAILED


async def test_a_target_that_raises_is_a_failed_try(bench):
    async def send(call: Call) -> None:
        raise RuntimeError("a bug")

    bench.sender.send = send
    await bench.start(claimed(due_at=bench.now))
    outcome = bench.result().outcome
    assert (outcome.kind, outcome.retryable, outcome.error) == ("error", True, "RuntimeError: a bug")
    assert bench.crashes == []


async def test_what_a_target_did_not_begin_goes_back_untried(bench):
    async def send(call: Call) -> None:
        raise NotBegun

    bench.sender.send = send
    monitor = await bench.start(claimed("1-1", due_at=bench.now, target=FUNCTION))
    assert bench.recorder.take_all() == [Return("1-1", 1)]
    assert bench.ended == [monitor]
    assert monitor.seconds is None  # it says nothing about how long runs take


class Queue:
    """A target where calls wait: begun when told, NotBegun if stopped before."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.begun = False

    async def send(self, call: Call) -> None:
        self.calls.append(call)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if self.begun:
                raise
            raise NotBegun from None

    def begin(self, at: float) -> None:
        self.begun = True
        assert self.calls[0].begun is not None
        self.calls[0].begun(at)


async def test_the_timeout_counts_from_when_it_begins(bench, fake_clock):
    queue = Queue()
    bench.sender.send = queue.send
    run = claimed("1-1", due_at=bench.now, target=FUNCTION, timeout=Duration(1000))
    await bench.start(run)
    await fake_clock.advance(0.9)
    queue.begin(fake_clock.monotonic())
    await fake_clock.advance(0.9)
    bench.deadlines.expire(fake_clock.monotonic())
    await fake_clock.settle()
    assert bench.recorder.take_all() == []
    await fake_clock.advance(0.2)
    bench.deadlines.expire(fake_clock.monotonic())
    await fake_clock.settle()
    result = bench.result()
    assert result.outcome.kind == "timeout"
    assert (result.started_at, result.lateness_ms) == (bench.now + 900, 900)
    assert result.duration_ms == 1100


@pytest.mark.parametrize(("cause", "back"), [("timeout", True), ("interrupted", True), ("cancel", False)])
async def test_what_is_stopped_before_it_begins_costs_no_try(bench, fake_clock, cause, back):
    bench.sender.send = Queue().send
    monitor = await bench.start(claimed("1-1", due_at=bench.now, target=FUNCTION))
    monitor.stop(cause)
    await fake_clock.settle()
    (told,) = bench.recorder.take_all()
    if back:
        assert told == Return("1-1", 1)
    else:
        assert (told.outcome.kind, told.started_at) == ("cancelled", None)


async def test_a_cancel_ends_it_as_cancelled(bench, fake_clock):
    bench.sender.hold = asyncio.Event()
    monitor = await bench.start(claimed(due_at=bench.now))
    monitor.stop("cancel")
    await fake_clock.settle()
    assert bench.result().outcome.kind == "cancelled"
    assert bench.ended == [monitor]


async def test_a_stop_of_the_node_interrupts_it(bench, fake_clock):
    bench.sender.hold = asyncio.Event()
    monitor = await bench.start(claimed(due_at=bench.now))
    monitor.stop("interrupted")
    await fake_clock.settle()
    result = bench.result()
    assert (result.outcome.kind, result.started_at) == ("interrupted", bench.now)


async def test_stopped_before_the_send_it_goes_back_untried(bench, fake_clock):
    monitor = Monitor(claimed("1-1", due_at=bench.now), bench.pool, bench.around, bench.ended.append)
    monitor.stop("interrupted")
    monitor.start()
    await fake_clock.settle()
    assert bench.recorder.take_all() == [Return("1-1", 1)]
    assert bench.sender.calls == []


async def test_what_is_gone_is_dropped_without_a_word(bench, fake_clock):
    bench.sender.hold = asyncio.Event()
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    monitor.stop("cancel")
    monitor.stop("gone")
    await fake_clock.settle()
    assert bench.recorder.take_all() == []
    assert not bench.owned.has("1-1", 1)
    assert bench.ended == [monitor]
    assert bench.sender.cancelled == ["1-1"]


async def test_nothing_is_sent_once_the_lease_is_doubtful(bench, fake_clock):
    """Frozen between the decision and the send: the run goes back, whoever has it now sends it."""
    await fake_clock.advance(4.5)
    await bench.start(claimed("1-1", due_at=bench.now))
    assert bench.sender.calls == []
    assert bench.recorder.take_all() == [Return("1-1", 1)]


async def test_a_full_recorder_keeps_the_slot_taken(fake_clock):
    bench = Bench(fake_clock, mailbox=1)
    await bench.start(claimed("1-1", due_at=bench.now))
    second = await bench.start(claimed("2-1", due_at=bench.now))
    assert second not in bench.ended
    assert bench.result().run.id == "1-1"
    await fake_clock.settle()
    assert second in bench.ended
    assert bench.result().run.id == "2-1"


async def test_what_is_known_is_reported_even_if_it_is_stopped_meanwhile(fake_clock):
    bench = Bench(fake_clock, mailbox=1)
    await bench.start(claimed("1-1", due_at=bench.now))
    second = await bench.start(claimed("2-1", due_at=bench.now))
    second.stop("interrupted")
    await fake_clock.settle()
    known = [item for item in bench.recorder.take_all() if isinstance(item, Finished)]
    assert [(item.run.id, item.outcome.kind) for item in known] == [("1-1", "ok"), ("2-1", "ok")]
    assert second in bench.ended


async def test_a_bug_in_the_engine_is_told_to_the_node(bench, fake_clock):
    bench.around.lateness.add = None
    monitor = await bench.start(claimed(due_at=bench.now))
    assert [type(error) for error in bench.crashes] == [TypeError]
    assert bench.ended == [monitor]


class Door:
    """A target that is handed calls; the test says how they end."""

    def __init__(self, bench: Bench) -> None:
        self.ended: dict[str, Callable[[Outcome], None]] = {}
        self.withdrawn: list[str] = []
        bench.sender.direct["webhook"] = self.hand_over

    def hand_over(self, call: Call, ended: Callable[[Outcome], None]) -> Callable[[], None]:
        self.ended[call.run_id] = ended
        return lambda: self.withdrawn.append(call.run_id)


async def test_a_call_is_handed_over_at_once_and_ends_when_the_target_says_so(bench, fake_clock):
    door = Door(bench)
    run = claimed("1-1", due_at=bench.now)
    monitor = Monitor(run, bench.pool, bench.around, bench.ended.append)
    monitor.start()
    assert monitor.task is None
    await fake_clock.advance(0.25)
    door.ended["1-1"](OK)
    result = bench.result()
    assert (result.run, result.outcome, result.duration_ms) == (run, OK, 250)
    assert bench.ended == [monitor]
    assert bench.sender.calls == []


@pytest.mark.parametrize(
    ("cause", "kind"), [("cancel", "cancelled"), ("interrupted", "interrupted"), ("timeout", "timeout")]
)
async def test_what_was_handed_over_is_withdrawn_when_it_is_stopped(bench, cause, kind):
    door = Door(bench)
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    monitor.stop(cause)
    monitor.stop("interrupted")
    door.ended["1-1"](OK)  # too late: nobody listens
    assert bench.result().outcome.kind == kind
    assert door.withdrawn == ["1-1"]
    assert bench.ended == [monitor]


async def test_what_was_handed_over_and_is_gone_is_dropped_without_a_word(bench):
    door = Door(bench)
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    monitor.stop("gone")
    assert bench.recorder.take_all() == []
    assert not bench.owned.has("1-1", 1)
    assert (door.withdrawn, bench.ended) == (["1-1"], [monitor])


async def test_a_target_that_raises_at_the_hand_over_is_a_failed_try(bench, fake_clock):
    def hand_over(call: Call, ended: Callable[[Outcome], None]) -> Callable[[], None]:
        raise RuntimeError("a bug")

    bench.sender.direct["webhook"] = hand_over
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    outcome = bench.result().outcome
    assert (outcome.kind, outcome.retryable, outcome.error) == ("error", True, "RuntimeError: a bug")
    assert (bench.ended, bench.crashes) == ([monitor], [])


async def test_nothing_is_handed_over_early_or_without_a_lease(bench, fake_clock):
    door = Door(bench)
    await bench.start(claimed("1-1", due_at=bench.now + 7))
    assert door.ended == {}
    await fake_clock.advance(4.5)
    await bench.start(claimed("2-1", due_at=bench.now))
    assert door.ended == {}
    assert Return("2-1", 1) in bench.recorder.take_all()


async def test_a_full_recorder_keeps_the_slot_of_what_was_handed_over(fake_clock):
    bench = Bench(fake_clock, mailbox=1)
    door = Door(bench)
    monitors = [await bench.start(claimed(f"{number}-1", due_at=bench.now)) for number in range(3)]
    for ended in door.ended.values():
        ended(OK)
    assert bench.ended == monitors[:1]
    assert bench.result().run.id == "0-1"
    await fake_clock.settle()
    assert bench.ended == monitors[:2]
    monitors[2].stop("interrupted")
    await fake_clock.settle()
    assert bench.ended == monitors
    assert [item.run.id for item in bench.recorder.take_all() if isinstance(item, Finished)] == ["1-1", "2-1"]


async def test_stopped_before_its_task_has_begun_it_still_ends(bench, fake_clock):
    monitor = Monitor(claimed("1-1", due_at=bench.now), bench.pool, bench.around, bench.ended.append)
    monitor.start()
    monitor.stop("cancel")
    await fake_clock.settle()
    assert bench.result().outcome.kind == "cancelled"
    assert (bench.ended, bench.sender.calls) == ([monitor], [])


async def test_a_target_is_told_the_databases_time(bench, fake_clock):
    """The machine's own may be an hour off."""
    bench.around.time.observe(bench.now + 3_600_000, fake_clock.monotonic(), fake_clock.monotonic())
    await bench.start(claimed("1-1", due_at=bench.now))
    await fake_clock.advance(1.5)
    assert bench.sender.calls[0].now_ms() == bench.now + 3_601_500
