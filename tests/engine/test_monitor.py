"""The Monitor, alone with one run: timeout, log, execution time, every way to be stopped."""

from __future__ import annotations

import asyncio
import random

import pytest

from onthedot.clock import FakeClock
from onthedot.engine.claiming.capacity import Capacity
from onthedot.engine.mailbox import Mailbox
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.membership.lateness import Lateness
from onthedot.engine.membership.lease import Lease
from onthedot.engine.messages import Fence, RecorderMessage, Return
from onthedot.engine.recording.owned_runs import OwnedRuns
from onthedot.engine.running.callbacks import CallbackUrls
from onthedot.engine.running.deadlines import Deadlines
from onthedot.engine.running.live_logs import LiveLogWriter
from onthedot.engine.running.monitor import Monitor
from onthedot.engine.running.run_context import RunContext
from onthedot.engine.settings import EngineSettings
from onthedot.model.duration import Duration
from onthedot.model.run import Attempt, ClaimedRun
from onthedot.store import Finished
from onthedot.targets import Call
from onthedot.targets.contract import NOT_BEGUN, Cause, Done, Ended, Handle, Profile, Stop
from tests.engine.making import FAILED, FUNCTION, OK, Desk, FakeSender, Started, claimed, stop
from tests.engine.scripted import ScriptedStore


class Bench:
    def __init__(self, clock: FakeClock, *, mailbox: int = 10) -> None:
        self.clock = clock
        self.now = clock.now_ms()
        self.sender = FakeSender(now=clock.now_ms)
        self.recorder: Mailbox[RecorderMessage] = Mailbox(mailbox)
        self.owned = OwnedRuns()
        self.unrecorded: dict[Fence, Handle] = {}
        self.lease = Lease(clock, 5.0)
        self.lease.renew(clock.monotonic())
        self.lateness = Lateness(clock)
        self.deadlines = Deadlines(clock)
        self.ended: list[Monitor] = []
        self.crashes: list[BaseException] = []
        self.lacked: list[str] = []
        time = DatabaseClock(clock)
        time.observe(clock.now_ms(), clock.monotonic(), clock.monotonic())
        self.context = RunContext(
            clock=clock,
            time=time,
            lease=self.lease,
            deadlines=self.deadlines,
            targets=self.sender.targets,
            recorder=self.recorder,
            owned=self.owned,
            unrecorded=self.unrecorded,
            lateness=self.lateness,
            logs=None,
            live_logs=LiveLogWriter(store=ScriptedStore(), clock=clock, health=StoreHealth()),
            crashed=self.crashes.append,
            lacks=lambda pool, what: self.lacked.append(what),
            callbacks=CallbackUrls(None),
            settings=EngineSettings(),
            rng=random.Random(1),
        )
        self.pool = Capacity(["webhook"], capacities={}, default=10, hold_most=10).pools["webhook"]

    def monitor(self, run: ClaimedRun) -> Monitor:
        self.owned.add(run.id, run.token)
        kind = self.context.targets.kind_of(run.spec.target)
        return Monitor(run, self.pool, kind, self.context, self.ended.append)

    async def start(self, run: ClaimedRun) -> Monitor:
        monitor = self.monitor(run)
        monitor.start()
        await self.clock.settle()
        return monitor

    def expire(self) -> None:
        """What the loop of the deadlines would do by now."""
        self.deadlines.expire(self.clock.monotonic())

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


async def test_whose_instant_was_set_far_back_goes_back(bench, fake_clock):
    """Here it would wait with its slot taken."""
    await bench.start(claimed(due_at=bench.now + 60_000))
    (given_back,) = bench.recorder.take_all()
    assert isinstance(given_back, Return)
    await fake_clock.advance(120)
    bench.expire()
    assert bench.sender.calls == []


async def test_recalled_while_it_waits_for_its_instant(bench, fake_clock):
    monitor = await bench.start(claimed(due_at=bench.now + 700))
    await fake_clock.advance(0.5)
    monitor.recall()
    await fake_clock.advance(0.5)
    bench.expire()
    assert bench.sender.calls == []
    (given_back,) = bench.recorder.take_all()
    assert isinstance(given_back, Return)


async def test_never_sent_before_its_instant(bench, fake_clock):
    """The instant is looked at again right before the send, whoever thought that it had come."""
    await bench.start(claimed(due_at=bench.now + 7))
    await fake_clock.advance(0.0069)
    bench.expire()
    await fake_clock.settle()
    assert bench.sender.calls == []
    await fake_clock.advance(0.0002)
    bench.expire()
    await fake_clock.settle()
    assert bench.sender.sent_at == [bench.now + 7]


async def test_stopped_before_its_instant_it_is_not_sent(bench, fake_clock):
    """By a clock that was set back this may be in a second; what is further away has gone back."""
    monitor = await bench.start(claimed("1-1", due_at=bench.now + 900))
    assert bench.ended == []
    stop(monitor, "interrupted")
    assert bench.recorder.take_all() == [Return("1-1", 1)]
    assert (bench.ended, len(bench.deadlines)) == ([monitor], 1)
    await fake_clock.advance(2)
    bench.expire()
    await fake_clock.settle()
    assert bench.sender.calls == []


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
    async def send(call: Call) -> Ended:
        return NOT_BEGUN

    bench.sender.send = send
    monitor = await bench.start(claimed("1-1", due_at=bench.now, target=FUNCTION))
    assert bench.recorder.take_all() == [Return("1-1", 1)]
    assert bench.ended == [monitor]
    assert monitor.seconds is None  # it says nothing about how long runs take


async def test_a_cancel_ends_it_as_cancelled(bench, fake_clock):
    bench.sender.hold = asyncio.Event()
    monitor = await bench.start(claimed(due_at=bench.now))
    stop(monitor, "cancelled")
    await fake_clock.settle()
    assert bench.result().outcome.kind == "cancelled"
    assert bench.ended == [monitor]


async def test_a_stop_of_the_node_interrupts_it(bench, fake_clock):
    bench.sender.hold = asyncio.Event()
    monitor = await bench.start(claimed(due_at=bench.now))
    stop(monitor, "interrupted")
    await fake_clock.settle()
    result = bench.result()
    assert (result.outcome.kind, result.started_at) == ("interrupted", bench.now)


async def test_stopped_before_the_send_it_goes_back_untried(bench, fake_clock):
    monitor = bench.monitor(claimed("1-1", due_at=bench.now))
    stop(monitor, "interrupted")
    monitor.start()
    await fake_clock.settle()
    assert bench.recorder.take_all() == [Return("1-1", 1)]
    assert bench.sender.calls == []


async def test_what_is_gone_is_dropped_without_a_word(bench, fake_clock):
    bench.sender.hold = asyncio.Event()
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    stop(monitor, "cancelled")
    stop(monitor, "gone")
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
    stop(second, "interrupted")
    await fake_clock.settle()
    known = [item for item in bench.recorder.take_all() if isinstance(item, Finished)]
    assert [(item.run.id, item.outcome.kind) for item in known] == [("1-1", "ok"), ("2-1", "ok")]
    assert second in bench.ended


async def test_a_bug_in_the_engine_is_told_to_the_node(bench, fake_clock):
    bench.context.lateness.add = None
    monitor = await bench.start(claimed(due_at=bench.now))
    assert [type(error) for error in bench.crashes] == [TypeError]
    assert bench.ended == [monitor]


async def test_a_call_is_handed_over_at_once_and_ends_when_the_target_says_so(bench, fake_clock):
    desk = Desk(bench.sender, begins=True)
    run = claimed("1-1", due_at=bench.now)
    monitor = bench.monitor(run)
    monitor.start()
    assert desk.names == ["1-1"]
    await fake_clock.advance(0.25)
    desk.calls[0].tell(OK)
    result = bench.result()
    assert (result.run, result.outcome, result.duration_ms) == (run, OK, 250)
    assert bench.ended == [monitor]
    assert bench.sender.calls == []


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("cause", ["cancelled", "interrupted", "timeout"])
async def test_what_has_begun_is_asked_to_stop(bench, cause, at_once):
    desk = Desk(bench.sender, begins=True, stops_at_once=at_once)
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    stop(monitor, cause)
    stop(monitor, "interrupted")
    if not at_once:
        assert (bench.ended, len(bench.recorder)) == ([], 0)  # its slot stays taken
        desk.calls[0].tell()
    desk.calls[0].tell(OK)  # too late: nobody listens
    assert bench.result().outcome.kind == cause
    assert desk.calls[0].stops == ([cause] if at_once else [cause, cause])  # the first reason counts
    assert bench.ended == [monitor]


async def test_one_that_ends_in_time_although_it_was_asked_to_stop_has_ended_so(bench):
    desk = Desk(bench.sender, begins=True, stops_at_once=False)
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    stop(monitor, "cancelled")
    desk.calls[0].tell(OK)
    assert bench.result().outcome == OK


@pytest.mark.parametrize(
    ("cause", "error"),
    [
        ("cancelled", "cancelled by a user; the process may still be running"),
        ("interrupted", "the node stopped; the process may still be running"),
        ("timeout", "timed out; the process may still be running"),
    ],
)
async def test_one_that_does_not_stop_is_given_up(bench, fake_clock, cause, error):
    desk = Desk(bench.sender, begins=True, stops_at_once=False, profile=Profile(stop_within=2.0))
    monitor = await bench.start(claimed("1-1", due_at=bench.now, timeout=Duration(60_000)))
    stop(monitor, cause)
    await fake_clock.advance(1.5)
    stop(monitor, cause)  # told again it has no more time
    bench.expire()
    assert bench.ended == []
    await fake_clock.advance(0.5)
    bench.expire()
    result = bench.result()
    assert (result.outcome.kind, result.outcome.error, result.duration_ms) == (cause, error, 2000)
    assert bench.ended == [monitor]
    desk.calls[0].tell(OK)  # unheard
    assert (len(bench.recorder), bench.ended) == (0, [monitor])


async def test_a_target_that_raises_when_it_is_asked_to_stop_is_waited_for_and_given_up(bench, fake_clock):
    class Broken(Started):
        def stop(self, cause: Cause) -> Stop:
            raise RuntimeError("a bug")

    desk = Desk(bench.sender, begins=True, profile=Profile(stop_within=2.0))
    desk.makes = Broken
    failed: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failed.append(context["exception"]))
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    monitor.recall()
    stop(monitor, "cancelled")
    assert (bench.ended, bench.crashes, len(failed)) == ([], [], 2)
    await fake_clock.advance(2)
    bench.expire()
    assert bench.result().outcome.kind == "cancelled"


async def test_gone_and_given_up_it_is_dropped_without_a_word(bench, fake_clock):
    Desk(bench.sender, begins=True, stops_at_once=False, profile=Profile(stop_within=2.0))
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    stop(monitor, "cancelled")
    stop(monitor, "gone")
    await fake_clock.advance(2)
    bench.expire()
    assert bench.recorder.take_all() == []
    assert (bench.owned.has("1-1", 1), bench.ended) == (False, [monitor])


async def test_what_was_handed_over_and_is_gone_is_dropped_without_a_word(bench):
    desk = Desk(bench.sender, begins=True)
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    stop(monitor, "gone")
    assert bench.recorder.take_all() == []
    assert not bench.owned.has("1-1", 1)
    assert (desk.calls[0].stops, bench.ended) == (["gone"], [monitor])


async def test_gone_takes_the_place_of_whatever_cause_there_was(bench):
    desk = Desk(bench.sender, begins=True, stops_at_once=False)
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    stop(monitor, "cancelled")
    stop(monitor, "gone")
    assert desk.calls[0].call.stopped == "gone"
    desk.calls[0].tell()
    assert bench.recorder.take_all() == []
    assert bench.ended == [monitor]


async def test_a_target_that_raises_at_the_start_is_a_failed_try(bench, fake_clock):
    class Broken(Desk):
        def start(self, call: Call, at: float, done: Done) -> Handle:
            raise RuntimeError("a bug")

    Broken(bench.sender)
    monitor = await bench.start(claimed("1-1", due_at=bench.now))
    outcome = bench.result().outcome
    assert (outcome.kind, outcome.retryable, outcome.error) == ("error", True, "RuntimeError: a bug")
    assert (bench.ended, bench.crashes) == ([monitor], [])


async def test_nothing_is_handed_over_early_or_without_a_lease(bench, fake_clock):
    desk = Desk(bench.sender)
    await bench.start(claimed("1-1", due_at=bench.now + 7))
    assert desk.calls == []
    await fake_clock.advance(4.5)
    await bench.start(claimed("2-1", due_at=bench.now))
    assert desk.calls == []
    assert Return("2-1", 1) in bench.recorder.take_all()


async def test_a_full_recorder_keeps_the_slot_of_what_was_handed_over(fake_clock):
    bench = Bench(fake_clock, mailbox=1)
    desk = Desk(bench.sender, begins=True)
    monitors = [await bench.start(claimed(f"{number}-1", due_at=bench.now)) for number in range(3)]
    for started in desk.calls:
        started.tell(OK)
    assert bench.ended == monitors[:1]
    assert bench.result().run.id == "0-1"
    await fake_clock.settle()
    assert bench.ended == monitors[:2]
    stop(monitors[2], "interrupted")
    await fake_clock.settle()
    assert bench.ended == monitors
    assert [item.run.id for item in bench.recorder.take_all() if isinstance(item, Finished)] == ["1-1", "2-1"]


async def test_stopped_before_its_first_step_it_still_ends(bench, fake_clock):
    monitor = bench.monitor(claimed("1-1", due_at=bench.now))
    monitor.start()
    stop(monitor, "cancelled")
    await fake_clock.settle()
    assert bench.result().outcome.kind == "cancelled"
    assert (bench.ended, bench.sender.calls) == ([monitor], [])


async def test_a_target_is_told_the_databases_time(bench, fake_clock):
    """The machine's own may be an hour off."""
    bench.context.time.observe(bench.now + 3_600_000, fake_clock.monotonic(), fake_clock.monotonic())
    await bench.start(claimed("1-1", due_at=bench.now))
    await fake_clock.advance(1.5)
    assert bench.sender.calls[0].time_at(fake_clock.monotonic()) == bench.now + 3_601_500


@pytest.mark.parametrize("again", [{}, {"tries": 2, "token": 3}, {"token": 4}], ids=["first", "retry", "after a loss"])
async def test_a_late_run_is_started_for_now(bench, fake_clock, again):
    """Whatever is dated by the instant of a start (the timestamp of a webhook) would else be as old as the run is."""
    desk = Desk(bench.sender, begins=True)
    await fake_clock.advance(3600)
    bench.lease.renew(fake_clock.monotonic())
    await bench.start(claimed("1-1", due_at=bench.now, **again))
    (started,) = desk.calls
    assert started.at == fake_clock.monotonic()
    assert started.call.time_at(started.at) == bench.now + 3_600_000


@pytest.mark.parametrize(("tries", "token", "number"), [(0, 1, 1), (0, 4, 1), (2, 5, 3)])
async def test_attempts_that_were_no_try_do_not_raise_the_number_of_the_try(bench, tries, token, number):
    await bench.start(claimed("1-1", due_at=bench.now, tries=tries, token=token))
    assert (bench.sender.calls[0].attempt, bench.sender.calls[0].try_number) == (token, number)


@pytest.mark.parametrize("survives", [True, False])
async def test_what_goes_on_outside_is_kept_until_its_result_is_recorded(bench, survives):
    desk = Desk(bench.sender, begins=True, profile=Profile(survives_node=survives))
    await bench.start(claimed("1-1", due_at=bench.now, token=3))
    desk.calls[0].tell(OK)
    assert bench.unrecorded == ({("1-1", 3): desk.calls[0]} if survives else {})
