"""Many runs that begin at once do not take the loop for themselves."""

from __future__ import annotations

import asyncio
from collections import deque

from onthedot.engine.claiming.start_queue import StartQueue
from onthedot.engine.messages import Return
from onthedot.engine.running.monitor import Monitor
from onthedot.engine.tuning import STARTS_PER_TURN
from tests.engine.making import Desk, claimed, stop
from tests.engine.test_monitor import Bench


def monitors(bench: Bench, count: int) -> list[Monitor]:
    runs = [claimed(f"{number}-1", due_at=bench.now) for number in range(1, count + 1)]
    return [bench.monitor(run) for run in runs]


async def test_the_first_begin_at_once_and_the_rest_turn_by_turn_in_their_order(fake_clock):
    bench = Bench(fake_clock)
    desk, start_queue = Desk(bench.sender, begins=True), StartQueue(bench.crashes.append)
    all_of_them = monitors(bench, 2 * STARTS_PER_TURN + 3)
    start_queue.begin(all_of_them[:-1])
    assert len(desk.calls) == STARTS_PER_TURN
    start_queue.begin(all_of_them[-1:])
    assert len(desk.calls) == STARTS_PER_TURN  # nobody overtakes
    await asyncio.sleep(0)
    assert len(desk.calls) == 2 * STARTS_PER_TURN
    await fake_clock.settle()
    assert desk.names == [monitor.run.id for monitor in all_of_them]


async def test_one_that_is_stopped_before_its_turn_is_not_sent_and_says_so(fake_clock):
    bench = Bench(fake_clock, mailbox=1000)
    desk, start_queue = Desk(bench.sender, begins=True), StartQueue(bench.crashes.append)
    all_of_them = monitors(bench, STARTS_PER_TURN + 2)
    start_queue.begin(all_of_them)
    stop(all_of_them[-1], "cancelled")
    await fake_clock.settle()
    assert desk.names == [monitor.run.id for monitor in all_of_them[:-1]]
    assert bench.result().outcome.kind == "cancelled"
    assert bench.ended == all_of_them[-1:]


async def test_all_that_wait_are_told_of_a_stop_at_once(fake_clock):
    bench = Bench(fake_clock, mailbox=1000)
    desk, start_queue = Desk(bench.sender, begins=True), StartQueue(bench.crashes.append)
    all_of_them = monitors(bench, 2 * STARTS_PER_TURN + 1)
    start_queue.begin(all_of_them)
    for monitor in all_of_them:
        stop(monitor, "gone")
    assert bench.ended == all_of_them
    assert len(desk.calls) == STARTS_PER_TURN
    await fake_clock.settle()
    assert bench.ended == all_of_them  # once


async def test_one_that_can_not_begin_is_told_to_the_node_and_the_others_begin(fake_clock):
    bench = Bench(fake_clock)
    desk, start_queue = Desk(bench.sender, begins=True), StartQueue(bench.crashes.append)
    first, second = monitors(bench, 2)
    first._context = None  # type: ignore[assignment]  # whatever goes wrong in it
    start_queue.begin([first, second])
    assert [type(error) for error in bench.crashes] == [AttributeError]
    assert desk.names == [second.run.id]


async def test_one_whose_turn_comes_after_the_lease_is_given_back_unsent(fake_clock):
    bench = Bench(fake_clock, mailbox=1000)
    desk, start_queue = Desk(bench.sender, begins=True), StartQueue(bench.crashes.append)
    all_of_them = monitors(bench, STARTS_PER_TURN + 1)
    start_queue.begin(all_of_them)
    bench.lease.renew(fake_clock.monotonic() - 4.5)
    await fake_clock.settle()
    assert len(desk.calls) == STARTS_PER_TURN
    assert bench.ended == all_of_them[-1:]
    assert bench.recorder.take_all() == [Return(all_of_them[-1].run.id, 1)]


async def test_those_that_end_at_their_start_and_make_room_for_the_next_do_not_pile_up(fake_clock):
    """Thousands wait for a slot, and none of them may begin any more."""
    bench = Bench(fake_clock, mailbox=1000)
    start_queue = StartQueue(bench.crashes.append)
    bench.lease.renew(fake_clock.monotonic() - 4.5)
    all_of_them = monitors(bench, 5000)
    waiting = deque(all_of_them)

    def ended(monitor: Monitor) -> None:
        bench.ended.append(monitor)
        if waiting:
            start_queue.begin([waiting.popleft()])

    for monitor in all_of_them:
        monitor._ended = ended
    start_queue.begin([waiting.popleft()])
    while waiting:
        await asyncio.sleep(0)
    await fake_clock.settle()
    assert (bench.ended, bench.crashes) == (all_of_them, [])
