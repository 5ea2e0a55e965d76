"""This machine has run out of something: runs go back unsent, less is claimed for a while, and it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from onthedot.clock import FakeClock
from onthedot.engine.messages import Return
from onthedot.engine.running.slot_pool import SlotPool
from onthedot.engine.tuning import RECOVER_EVERY
from onthedot.model.run import Outcome
from onthedot.targets import Call
from onthedot.targets.contract import NOT_BEGUN, Ended
from onthedot.telemetry import Event, subscribe
from tests.engine.cluster import Cluster
from tests.engine.making import COMMAND, HOOK, Desk, FakeSender, claimed, spec
from tests.engine.test_monitor import Bench
from tests.engine.test_node_firing import due_in

FILES = "too many open files in this process"


@pytest.fixture
async def cluster(fake_clock: FakeClock):
    cluster = await Cluster.open(fake_clock)
    yield cluster
    await cluster.close()


@pytest.fixture
def events() -> Iterator[list[Event]]:
    heard: list[Event] = []
    stop = subscribe(heard.append)
    yield heard
    stop()


class Narrow(FakeSender):
    """So many calls at a time; there is no room in this process for another one."""

    def __init__(self, room: int, cluster: Cluster, *, takes: float) -> None:
        super().__init__(now=cluster.clock.now_ms)
        self.room = room
        self._takes = takes
        self._clock = cluster.clock
        self.refused = 0

    async def send(self, call: Call) -> Outcome | Ended:
        if self.room <= 0:
            self.refused += 1
            call.lacks(FILES)
            return NOT_BEGUN
        self.room -= 1
        try:
            await self._clock.sleep(self._takes)
            return await super().send(call)
        finally:
            self.room += 1


@pytest.mark.parametrize("target", [HOOK, COMMAND])
async def test_a_run_without_room_goes_back_unsent(fake_clock, target):
    bench = Bench(fake_clock)

    async def lacking(call: Call) -> Ended:
        call.lacks(FILES)
        return NOT_BEGUN

    bench.sender.send = lacking  # type: ignore[method-assign]
    await bench.start(claimed("1-1", due_at=bench.now, target=target, delivery="at_most_once"))
    assert bench.recorder.take_all() == [Return("1-1", 1)]
    assert bench.lacked == [FILES]


async def test_one_that_was_handed_over_too(fake_clock):
    bench = Bench(fake_clock)
    desk = Desk(bench.sender)
    await bench.start(claimed("1-1", due_at=bench.now))
    desk.calls[0].call.lacks(FILES)
    desk.calls[0].tell()
    assert bench.recorder.take_all() == [Return("1-1", 1)]
    assert bench.lacked == [FILES]


@pytest.mark.parametrize("delivery", ["at_most_once", "at_least_once"])
async def test_everything_is_sent_once_and_nothing_counts_as_a_try(cluster, fake_clock, events, delivery):
    """Seen: of 1,000 at-most-once runs on 1,024 descriptors 501 were dead letters that nobody had received."""
    sender = Narrow(10, cluster, takes=0.3)
    node = await cluster.node(sender=sender)
    jobs = [await cluster.create(spec(schedule=due_in(1000), delivery=delivery)) for _ in range(60)]
    await cluster.until(lambda: len(sender.calls) == 60, most=120)
    await fake_clock.advance(1)
    assert len(set(sender.sent)) == 60
    assert sender.refused > 0
    for job in jobs:
        run = await cluster.run(job.id)
        assert (run.status, run.tries, run.losses) == ("DONE", 1, 0)
    short = [event.fields for event in events if event.name == "node.short"]
    assert short
    assert short[0]["what"] == FILES
    assert short[0]["kind"] == "webhook"
    assert node.node.lacking is not None
    await fake_clock.advance(60)
    assert node.node.lacking is None
    assert node.node.load.capacity == node.node.info.capacity


async def test_what_finds_no_room_at_all_does_not_ask_again_and_again(cluster, fake_clock):
    sender = Narrow(0, cluster, takes=0.1)
    node = await cluster.node(sender=sender)
    await cluster.create(spec(schedule=due_in(100)))
    await fake_clock.advance(10)
    assert sender.calls == []
    assert 5 < node.way.asked.count("give_back") <= 42
    assert FILES in node.node.lacking
    assert node.node.ready
    sender.room = 1
    await fake_clock.advance(2)
    assert len(sender.calls) == 1


def pool(capacity: int, running: int) -> SlotPool:
    made = SlotPool("webhook", ["webhook"], capacity, 1000)
    for _ in range(running):
        made.hold()
        made.start()
    return made


def test_half_of_what_runs_and_back_by_quarters():
    squeezed = pool(1000, 600)
    assert squeezed.squeeze(5.0, FILES)
    assert squeezed.capacity == 300
    assert squeezed.room == 0
    assert not squeezed.squeeze(5.5, FILES)  # the same lack
    assert squeezed.capacity == 300
    squeezed.recover(5.9)
    assert squeezed.capacity == 300
    squeezed.recover(5.0 + RECOVER_EVERY)
    assert squeezed.capacity == 375
    assert squeezed.squeeze(6.0 + RECOVER_EVERY, FILES)
    assert squeezed.capacity == 187
    for second in range(10, 40):
        squeezed.recover(float(second))
    assert (squeezed.capacity, squeezed.lacking) == (1000, None)


def test_one_is_always_tried():
    squeezed = pool(4, 1)
    assert squeezed.squeeze(1.0, FILES)
    assert squeezed.capacity == 1
    squeezed.end()
    assert squeezed.squeeze(9.0, FILES)
    assert (squeezed.capacity, squeezed.room) == (1, 1)


async def test_a_kind_gets_no_more_slots_than_this_process_can_have(cluster):
    sender = FakeSender(at_most=700)
    node = await cluster.node(sender=sender, concurrency=1000)
    assert node.node._slots.pools["webhook"].capacity == 700
    other = await cluster.node(sender=sender, concurrency=100)
    assert other.node._slots.pools["webhook"].capacity == 100
    await asyncio.wait_for(cluster.clock.settle(), 5)
