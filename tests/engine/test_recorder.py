"""The Recorder: take one, take all that wait, write, repeat; nothing is lost while the database is away."""

from __future__ import annotations

import asyncio
import random

import pytest

from onthedot.clock import FakeClock
from onthedot.engine.look_times import LookTimes
from onthedot.engine.mailbox import Mailbox, Signal
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.messages import Fence, RecorderMessage, Return
from onthedot.engine.recording.batch_window import BatchWindow
from onthedot.engine.recording.owned_runs import OwnedRuns
from onthedot.engine.recording.recorder import Recorder
from onthedot.engine.tuning import BATCH, INSIDE_TOGETHER, INSIDE_WAIT, OUTSIDE_WAIT, WRITE_GAP, WRITE_NOW
from onthedot.model.run import Outcome
from onthedot.plan import Dead, Done, RetryLater, on_outcome
from onthedot.store import Finished, FinishReport
from onthedot.targets.contract import Call, Handle
from onthedot.telemetry import Event, subscribe
from tests.engine.making import FAILED, FUNCTION, HOOK, OK, Desk, FakeSender, claimed
from tests.engine.scripted import AWAY, ScriptedStore


def written(recorded: int) -> FinishReport:
    return FinishReport(recorded=recorded, refused=[], repeated=[])


class Bench:
    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.store = ScriptedStore()
        self.mailbox: Mailbox[RecorderMessage] = Mailbox(5000)
        self.owned = OwnedRuns()
        self.health = StoreHealth()
        self.next_fires_in: float | None = None
        self.unrecorded: dict[Fence, Handle] = {}
        self.look_times = LookTimes(clock)
        self.notes = Signal()
        time = DatabaseClock(clock)
        time.observe(clock.now_ms(), clock.monotonic(), clock.monotonic())
        self.recorder = Recorder(
            "me",
            mailbox=self.mailbox,
            store=self.store,
            clock=clock,
            owned=self.owned,
            unrecorded=self.unrecorded,
            health=self.health,
            backoff=Backoff(random.Random(1)),
            batch_window=BatchWindow(frozenset({"function"}), self, time),
            look_times=self.look_times,
            notes=self.notes,
        )

    @property
    def head(self) -> int | None:
        """Of the heap, whenever it is asked for."""
        return None if self.next_fires_in is None else self.clock.now_ms() + round(self.next_fires_in * 1000)

    def ended(self, run_id: str = "1-1", outcome: Outcome = OK, **run) -> None:
        item = claimed(run_id, due_at=self.clock.now_ms(), **run)
        self.owned.add(item.id, item.token)
        now = self.clock.now_ms()
        self.mailbox.put_over(
            Finished(
                run=item,
                outcome=outcome,
                decision=on_outcome(item, outcome, now, random.Random(1)),
                started_at=now,
                finished_at=now + 5,
                lateness_ms=0,
                duration_ms=5,
                log="said",
            )
        )

    def given_back(self, run_id: str, token: int = 1) -> None:
        self.owned.add(run_id, token)
        self.mailbox.put_over(Return(run_id, token))


@pytest.fixture
def bench(fake_clock: FakeClock) -> Bench:
    return Bench(fake_clock)


@pytest.fixture
def events():
    seen: list[Event] = []
    unsubscribe = subscribe(seen.append)
    yield seen
    unsubscribe()


async def test_what_waits_is_written_in_one_batch(bench):
    for number in range(5):
        bench.ended(f"{number}-1")
    await bench.recorder.step()
    ((*batch,),) = bench.store.asked_for("finish")
    assert [item.run.id for item in batch] == [f"{number}-1" for number in range(5)]
    assert batch[0].decision == Done(status="done", tries=1, losses=0)
    assert (batch[0].log, batch[0].duration_ms, batch[0].lateness_ms) == ("said", 5, 0)
    assert bench.recorder.idle
    assert len(bench.owned) == 0


@pytest.mark.parametrize("tokens", [(1, 2), (2, 1)])
async def test_two_attempts_of_a_run_are_not_written_together(bench, events, tokens):
    """Found by the simulation: a callback had ended the first, whose call was answered after the run was claimed anew.
    The store tells of runs, not of attempts, and took the one for the other."""
    for token in tokens:
        bench.ended("1-1", FAILED, token=token)
    bench.owned.add("1-1", 2)
    bench.ended("2-1")
    bench.store.script("finish", written(2), AWAY, FinishReport(recorded=0, refused=["1-1"], repeated=[]))
    assert not await collected(bench)
    assert bench.owned.has("1-1", 2) == (tokens[0] == 1)
    assert await bench.recorder.write()
    fences = [[(item.run.id, item.run.token) for item in batch] for batch in bench.store.asked_for("finish")]
    first, second = [("1-1", tokens[0]), ("2-1", 1)], [("1-1", tokens[1])]
    assert fences == [first, second, second]
    assert (bench.recorder.idle, len(bench.owned)) == (True, 0)
    assert [event.name for event in events].count("run.retried") == 1


async def collected(bench: Bench) -> bool:
    bench.recorder.collect()
    return await bench.recorder.write()


async def test_a_batch_has_a_bound(bench, fake_clock):
    for number in range(BATCH + 1):
        bench.ended(f"{number}-1")
    await bench.recorder.step()
    await fake_clock.advance(1)
    await bench.recorder.step()
    assert [len(batch) for batch in bench.store.asked_for("finish")] == [BATCH, 1]


async def test_one_alone_is_written_at_once_and_those_that_follow_closely_together(bench, fake_clock):
    bench.ended("1-1")
    await bench.recorder.step()
    bench.ended("2-1")
    step = asyncio.ensure_future(bench.recorder.step())
    await fake_clock.advance(WRITE_GAP / 2)
    bench.ended("3-1")
    await fake_clock.advance(WRITE_GAP / 4)
    assert not step.done()
    await fake_clock.advance(WRITE_GAP / 4)
    assert step.done()
    assert [[item.run.id for item in batch] for batch in bench.store.asked_for("finish")] == [["1-1"], ["2-1", "3-1"]]


async def in_step(bench: Bench) -> asyncio.Future[None]:
    await bench.clock.advance(1)  # long after whatever was written last
    step = asyncio.ensure_future(bench.recorder.step())
    await bench.clock.settle()
    return step


async def test_what_was_called_outside_waits_for_one_other_that_is_about_to_fire(bench, fake_clock):
    bench.next_fires_in = OUTSIDE_WAIT / 2
    bench.ended("1-1")
    step = await in_step(bench)
    assert not step.done()
    bench.ended("2-1")
    await fake_clock.settle()
    assert step.done()
    assert [len(batch) for batch in bench.store.asked_for("finish")] == [2]


async def test_but_not_for_long(bench, fake_clock):
    bench.next_fires_in = OUTSIDE_WAIT / 2
    bench.ended("1-1")
    step = await in_step(bench)
    await fake_clock.advance(OUTSIDE_WAIT * 0.99)
    assert not step.done()
    await fake_clock.advance(OUTSIDE_WAIT * 0.02)
    assert step.done()


async def test_nor_if_nothing_is_about_to_fire(bench):
    bench.next_fires_in = OUTSIDE_WAIT + 0.001
    bench.ended("1-1")
    assert (await in_step(bench)).done()
    bench.next_fires_in = None
    bench.ended("2-1")
    assert (await in_step(bench)).done()


async def test_what_ran_in_this_process_waits_for_some_others(bench, fake_clock):
    bench.next_fires_in = INSIDE_WAIT / 2
    bench.ended("1-1", target=FUNCTION)
    step = await in_step(bench)
    for number in range(2, INSIDE_TOGETHER):
        bench.ended(f"{number}-1", target=FUNCTION)
        await fake_clock.settle()
        assert not step.done()
    bench.ended("9-1", target=FUNCTION)
    await fake_clock.settle()
    assert step.done()
    assert [len(batch) for batch in bench.store.asked_for("finish")] == [INSIDE_TOGETHER]


async def test_what_was_called_outside_does_not_wait_as_long_as_what_ran_inside(bench, fake_clock):
    bench.next_fires_in = 0.001
    bench.ended("1-1", target=FUNCTION)
    step = await in_step(bench)
    bench.ended("2-1")
    await fake_clock.settle()
    assert step.done()


@pytest.mark.parametrize("first", [True, False])
async def test_what_goes_back_and_who_keeps_others_waiting_is_written_at_once(bench, fake_clock, first):
    bench.next_fires_in = 0.001
    hasty = [lambda: bench.given_back("3-1"), lambda: bench.ended("4-1", target=FUNCTION, overlap="queue")]
    for come in hasty:
        if not first:
            bench.ended("1-1", target=FUNCTION)
            step = await in_step(bench)
            assert not step.done()
            come()
            await fake_clock.settle()
        else:
            come()
            step = await in_step(bench)
        assert step.done()
        assert bench.recorder.idle


async def test_many_that_wait_are_not_kept_waiting(bench):
    bench.ended("1-1")
    await bench.recorder.step()
    for number in range(WRITE_NOW + 1):
        bench.ended(f"{number}-2")
    await bench.recorder.step()
    assert [len(batch) for batch in bench.store.asked_for("finish")] == [1, WRITE_NOW + 1]


async def test_what_it_had_in_hand_while_it_waited_is_written_at_the_last_look(bench, fake_clock):
    bench.ended("1-1")
    await bench.recorder.step()
    bench.ended("2-1")
    step = asyncio.ensure_future(bench.recorder.step())
    await fake_clock.settle()
    step.cancel()
    await fake_clock.settle()
    bench.recorder.collect()
    assert await bench.recorder.write()
    assert bench.recorder.idle
    assert [[item.run.id for item in batch] for batch in bench.store.asked_for("finish")] == [["1-1"], ["2-1"]]


async def test_a_failed_try_comes_back_later_and_the_timer_expects_it(bench, fake_clock):
    bench.ended(outcome=FAILED)
    await bench.recorder.step()
    decision = bench.store.asked_for("finish")[0][0].decision
    assert isinstance(decision, RetryLater)
    assert 750 <= decision.ready_at - fake_clock.now_ms() <= 1250
    bench.look_times.looked(fake_clock.monotonic(), fake_clock.now_us(), gap=100.0)
    left = bench.look_times.seconds_left(fake_clock.monotonic(), decision.ready_at * 1000 - 500_000)
    assert left == pytest.approx(0.5), "the Timer looks when the retry is ready"


async def test_the_last_failed_try_is_a_dead_letter_and_said_so(bench, events):
    bench.ended(outcome=FAILED, tries=2)
    await bench.recorder.step()
    assert bench.store.asked_for("finish")[0][0].decision == Dead(reason="attempts", tries=3, losses=0)
    assert [event.name for event in events] == ["run.finished", "dead.letter"]
    assert events[0].fields["status"] == "FAILED"
    assert events[1].fields["reason"] == "attempts"


async def test_returns_are_given_back_not_finished(bench):
    bench.given_back("3-1", 2)
    bench.given_back("4-1", 1)
    await bench.recorder.step()
    assert bench.store.asked_for("give_back") == [[("3-1", 2), ("4-1", 1)]]
    assert bench.store.asked_for("finish") == []
    assert bench.store.asked_for("notify") == ["due"], "who has a slot looks at once"
    assert len(bench.owned) == 0


async def test_an_absent_database_is_waited_for_with_the_same_batch(bench, fake_clock):
    bench.store.script("finish", AWAY, AWAY, AWAY)
    bench.ended(outcome=FAILED)
    step = asyncio.ensure_future(bench.recorder.step())
    await fake_clock.settle()
    assert not step.done()
    assert not bench.health.ok
    assert not bench.recorder.idle
    assert bench.owned.has("1-1", 1)
    await fake_clock.advance(1.0)
    assert step.done()
    batches = bench.store.asked_for("finish")
    assert len(batches) == 4
    assert all(batch[0] is batches[0][0] for batch in batches)  # the same decision, not another throw of the dice
    assert bench.health.ok


async def test_what_was_written_is_not_written_again_when_the_rest_fails(bench, fake_clock):
    bench.store.script("give_back", AWAY)
    bench.ended("1-1")
    bench.given_back("2-1")
    step = asyncio.ensure_future(bench.recorder.step())
    await fake_clock.advance(0.1)
    assert step.done()
    assert len(bench.store.asked_for("finish")) == 1
    assert len(bench.store.asked_for("give_back")) == 2


async def test_what_the_store_refuses_is_let_go(bench, events):
    bench.store.script("finish", FinishReport(recorded=1, refused=["2-1"], repeated=[]))
    bench.ended("1-1")
    bench.ended("2-1", FAILED)
    await bench.recorder.step()
    assert [(event.name, event.fields["run_id"]) for event in events] == [("run.finished", "1-1")]
    assert len(bench.owned) == 0


async def test_retries_and_skips_are_said(bench, events):
    bench.ended("1-1", FAILED)
    bench.ended("2-1", Outcome(kind="expired"))
    bench.ended("3-1", Outcome(kind="interrupted"))
    bench.ended("4-1", Outcome(kind="cancelled"))
    await bench.recorder.step()
    assert [event.name for event in events] == ["run.retried", "run.skipped", "run.finished"]
    assert events[1].fields["reason"] == "late"
    assert events[2].fields["status"] == "CANCELLED"


async def test_rest_ends_when_all_is_written(bench, fake_clock):
    bench.ended()
    rest = asyncio.ensure_future(bench.recorder.rest())
    await fake_clock.settle()
    assert not rest.done()
    await bench.recorder.step()
    await fake_clock.settle()
    assert rest.done()


async def test_the_last_look_takes_what_waits_without_waiting(bench):
    bench.recorder.collect()
    assert await bench.recorder.write()
    bench.ended()
    bench.recorder.collect()
    assert await bench.recorder.write()
    assert len(bench.store.asked_for("finish")) == 1


async def test_a_result_that_can_t_be_stored_takes_no_other_with_it(bench):
    bench.store.script("finish", ValueError("a NUL"), written(1), ValueError("a NUL"), written(1), written(1))
    for number in range(3):
        bench.ended(f"{number}-1", FAILED)
    await bench.recorder.step()
    together, first, second, stripped, third = bench.store.asked_for("finish")
    assert [len(batch) for batch in (together, first, second, stripped, third)] == [3, 1, 1, 1, 1]
    assert [batch[0].run.id for batch in (first, second, stripped, third)] == ["0-1", "1-1", "1-1", "2-1"]
    assert stripped[0].outcome.error == "the details could not be stored (ValueError)"
    assert (stripped[0].log, stripped[0].decision) == (None, second[0].decision)
    assert bench.recorder.idle


async def test_an_absence_in_between_goes_on_where_it_stopped(bench, fake_clock):
    bench.store.script("finish", ValueError("a NUL"), written(1), AWAY)
    for number in range(2):
        bench.ended(f"{number}-1")
    step = asyncio.ensure_future(bench.recorder.step())
    await fake_clock.advance(0.2)
    assert step.done()
    assert [[item.run.id for item in batch] for batch in bench.store.asked_for("finish")] == [
        ["0-1", "1-1"],
        ["0-1"],
        ["1-1"],
        ["1-1"],
    ]


async def test_a_store_that_takes_nothing_stops_the_node(bench):
    bench.store.script("finish", *[ValueError("broken")] * 3)
    bench.ended()
    with pytest.raises(ValueError, match="broken"):
        await bench.recorder.step()
    assert not bench.recorder.idle


async def test_one_off_jobs_are_closed_when_nothing_is_left_to_record(fake_clock: FakeClock):
    bench = Bench(fake_clock)
    bench.store.script("close_one_offs", 1000)
    bench.ended(recurring=False)
    await bench.recorder.step()
    step = asyncio.ensure_future(bench.recorder.step())
    await fake_clock.advance(0.2)
    assert bench.store.asked_for("close_one_offs") == [], "somebody may follow"
    await fake_clock.advance(0.1)
    assert bench.store.asked_for("close_one_offs") == [1000, 1000], "until there are no more of them"
    bench.ended("2-1", recurring=False)
    await fake_clock.advance(1)
    await step
    assert len(bench.store.asked_for("finish")) == 2


async def test_what_follows_closely_is_recorded_first(fake_clock: FakeClock):
    bench = Bench(fake_clock)
    bench.ended(recurring=False)
    await bench.recorder.step()
    step = asyncio.ensure_future(bench.recorder.step())
    await fake_clock.advance(0.2)
    bench.ended("2-1", recurring=False)
    await fake_clock.advance(0.2)
    await step
    assert [name for name, _ in bench.store.asked] == ["finish", "finish"]


async def test_recurring_jobs_have_nothing_to_close(fake_clock: FakeClock):
    bench = Bench(fake_clock)
    bench.ended(recurring=True)
    await bench.recorder.step()
    step = asyncio.ensure_future(bench.recorder.step())
    await fake_clock.advance(1)
    assert bench.store.asked_for("close_one_offs") == []
    step.cancel()


async def test_a_store_that_is_away_leaves_it_to_the_duty(fake_clock: FakeClock):
    bench = Bench(fake_clock)
    bench.store.script("close_one_offs", AWAY)
    bench.ended(recurring=False)
    await bench.recorder.step()
    step = asyncio.ensure_future(bench.recorder.step())
    await fake_clock.advance(2)
    assert bench.store.asked_for("close_one_offs") == [1000]
    assert not step.done()
    step.cancel()


async def test_who_keeps_something_outside_is_told_when_its_result_is_committed(bench):
    desk = Desk(FakeSender())
    for run_id in ("1-1", "2-1", "3-1"):
        started = desk.start(Call(run_id=run_id, job_id=1, slot=1, attempt=1, target=HOOK), 0.0, lambda ended: None)
        bench.unrecorded[run_id, 1] = started
    bench.ended("1-1")
    bench.ended("2-1")
    bench.store.script("finish", AWAY, FinishReport(recorded=1, refused=["2-1"], repeated=[]))
    step = asyncio.ensure_future(bench.recorder.step())
    await bench.clock.settle()
    assert [started.recorded_once for started in desk.calls] == [False, False, False]
    await bench.clock.advance(1)
    await step
    # The second is another node's by now, and so is what it left outside; the third still runs.
    assert [started.recorded_once for started in desk.calls] == [True, False, False]
    assert list(bench.unrecorded) == [("3-1", 1)]
