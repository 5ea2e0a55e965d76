"""Many runs that begin at once do not take the loop for themselves."""

from __future__ import annotations

import asyncio

from onthedot.engine.claiming.start_queue import StartQueue
from onthedot.engine.running.monitor import Monitor
from onthedot.engine.tuning import STARTS_PER_TURN
from tests.engine.making import FakeSender, claimed
from tests.engine.test_monitor import Bench


class Counting:
    """A kind that is handed calls and answers none."""

    def __init__(self, sender: FakeSender) -> None:
        self.begun: list[str] = []
        sender.direct["webhook"] = self.hand_over

    def hand_over(self, call, ended):
        self.begun.append(call.run_id)
        return lambda: True


def monitors(bench: Bench, count: int) -> list[Monitor]:
    runs = [claimed(f"{number}-1", due_at=bench.now) for number in range(1, count + 1)]
    return [Monitor(run, bench.pool, bench.around, bench.ended.append) for run in runs]


async def test_the_first_begin_at_once_and_the_rest_turn_by_turn_in_their_order(fake_clock):
    bench = Bench(fake_clock)
    door, start_queue = Counting(bench.sender), StartQueue(bench.crashes.append)
    all_of_them = monitors(bench, 2 * STARTS_PER_TURN + 3)
    start_queue.begin(all_of_them[:-1])
    assert len(door.begun) == STARTS_PER_TURN
    start_queue.begin(all_of_them[-1:])
    assert len(door.begun) == STARTS_PER_TURN  # nobody overtakes
    await asyncio.sleep(0)
    assert len(door.begun) == 2 * STARTS_PER_TURN
    await fake_clock.settle()
    assert door.begun == [monitor.run.id for monitor in all_of_them]


async def test_one_that_is_stopped_before_its_turn_is_not_sent_and_says_so(fake_clock):
    bench = Bench(fake_clock, mailbox=1000)
    door, start_queue = Counting(bench.sender), StartQueue(bench.crashes.append)
    all_of_them = monitors(bench, STARTS_PER_TURN + 2)
    start_queue.begin(all_of_them)
    all_of_them[-1].stop("cancel")
    await fake_clock.settle()
    assert door.begun == [monitor.run.id for monitor in all_of_them[:-1]]
    assert bench.result().outcome.kind == "cancelled"
    assert bench.ended == all_of_them[-1:]


async def test_all_that_wait_are_told_of_a_stop_at_once(fake_clock):
    bench = Bench(fake_clock, mailbox=1000)
    door, start_queue = Counting(bench.sender), StartQueue(bench.crashes.append)
    all_of_them = monitors(bench, 2 * STARTS_PER_TURN + 1)
    start_queue.begin(all_of_them)
    for monitor in all_of_them:
        monitor.stop("gone")
    start_queue.hurry()
    await asyncio.gather(*(monitor.task for monitor in all_of_them if monitor.task is not None))
    assert bench.ended == all_of_them
    assert len(door.begun) == STARTS_PER_TURN
    await fake_clock.settle()
    assert bench.ended == all_of_them  # once


async def test_one_that_can_not_begin_is_told_to_the_node_and_the_others_begin(fake_clock):
    bench = Bench(fake_clock)
    door, start_queue = Counting(bench.sender), StartQueue(bench.crashes.append)
    first, second = monitors(bench, 2)
    first._around = None  # type: ignore[assignment]  # whatever goes wrong in it
    start_queue.begin([first, second])
    assert [type(error) for error in bench.crashes] == [AttributeError]
    assert door.begun == [second.run.id]


async def test_one_whose_turn_comes_after_the_lease_is_given_back_unsent(fake_clock):
    bench = Bench(fake_clock, mailbox=1000)
    door, start_queue = Counting(bench.sender), StartQueue(bench.crashes.append)
    all_of_them = monitors(bench, STARTS_PER_TURN + 1)
    start_queue.begin(all_of_them)
    bench.lease.renew(fake_clock.monotonic() - 4.5)
    await fake_clock.settle()
    assert len(door.begun) == STARTS_PER_TURN
    assert bench.ended == all_of_them[-1:]
