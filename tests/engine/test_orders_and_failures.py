"""Beat, orders, lost nodes, duties: one step at a time."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from onthedot.clock import FakeClock
from onthedot.engine.look_times import LookTimes
from onthedot.engine.mailbox import Mailbox, Signal
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.duties import FLOORS_EVERY, MAINTENANCE_EVERY, Duties
from onthedot.engine.membership.failure_detector import FailureDetector
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.membership.heartbeat import Heartbeat
from onthedot.engine.membership.lease import Lease
from onthedot.engine.membership.order_poller import OrderPoller
from onthedot.engine.membership.peer_beats import PeerBeats
from onthedot.engine.messages import DispatcherMessage, OrdersRead
from onthedot.engine.recording.owned_runs import OwnedRuns
from onthedot.engine.running.run_log_files import LogFiles
from onthedot.engine.tuning import BEAT_EVERY, ORDERS_EVERY
from onthedot.errors import StoreUnavailable
from onthedot.model.node import NodeLoad
from onthedot.store import Beat, Order, PolledOrders
from tests.engine.scripted import AWAY, ScriptedStore
from tests.engine.test_run_log import inline


class Bench:
    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.rng = random.Random(1)
        self.store = ScriptedStore(clock)
        self.time = DatabaseClock(clock)
        self.lease = Lease(clock, 5.0)
        self.watch = PeerBeats(5.0)
        self.health = StoreHealth()
        self.owned = OwnedRuns()
        self.owned.add("1-1", 1)
        self.mailbox: Mailbox[DispatcherMessage] = Mailbox(10)
        self.lost = asyncio.Event()
        self.look_times = LookTimes(clock)
        self.orders = OrderPoller(
            "me",
            store=self.store,
            clock=clock,
            time=self.time,
            lease=self.lease,
            owned=self.owned,
            dispatcher=self.mailbox,
            health=self.health,
            backoff=Backoff(self.rng),
        )
        self.failure_detector = FailureDetector(
            "me",
            store=self.store,
            clock=clock,
            watch=self.watch,
            health=self.health,
            backoff=Backoff(self.rng),
            look_times=self.look_times,
        )
        self.notes = Signal()
        self.heartbeat = Heartbeat(
            "me",
            store=self.store,
            clock=clock,
            time=self.time,
            lease=self.lease,
            watch=self.watch,
            health=self.health,
            rng=self.rng,
            every=BEAT_EVERY,
            load=lambda: NodeLoad(held=3),
            lost=self.lost,
            order_poller=self.orders,
            orphans=self.failure_detector.orphans,
            notes=self.notes,
            look_times=self.look_times,
        )

    def says(self, *orders: Order) -> PolledOrders:
        return PolledOrders(now_us=self.clock.now_us(), orders=list(orders))

    def alive(self, *peers: tuple[str, int]) -> Beat:
        return Beat(now=self.clock.now_ms(), alive=True, peers=list(peers))

    async def beats(self, seconds: int, *peers: tuple[str, int]) -> None:
        for _ in range(seconds):
            self.store.script("beat", self.alive(*peers))
            assert await self.heartbeat.beat()
            await self.clock.advance(1.0)


@pytest.fixture
def bench(fake_clock: FakeClock) -> Bench:
    return Bench(fake_clock)


async def test_a_beat_renews_the_lease_and_sets_the_time(bench, fake_clock):
    bench.store.script("beat", bench.alive())
    assert await bench.heartbeat.beat()
    assert bench.lease.may_start()
    assert bench.time.now_ms() == fake_clock.now_ms()
    assert bench.store.asked_for("beat") == [NodeLoad(held=3)]


async def test_it_beats_once_a_second(bench, fake_clock):
    bench.store.script("beat", bench.alive(), bench.alive())
    step = asyncio.ensure_future(bench.heartbeat.step())
    await fake_clock.advance(0.999)
    assert not step.done()
    await fake_clock.advance(0.001)
    assert step.done()


async def test_a_beat_without_an_answer_is_repeated_sooner_and_renews_nothing(bench, fake_clock):
    bench.store.script("beat", AWAY)
    step = asyncio.ensure_future(bench.heartbeat.step())
    await fake_clock.advance(0.5)
    assert step.done()
    assert not bench.lease.may_start()
    assert not bench.health.ok


async def test_a_beat_that_hangs_is_given_up_in_time_for_others_within_the_lease(bench, fake_clock, monkeypatch):
    hanging = asyncio.Event()

    async def hang(node: str, load: NodeLoad) -> Beat:
        try:
            await hanging.wait()
        except asyncio.CancelledError:
            await hanging.wait()  # a silent network does not answer the rollback either
        return Beat(now=fake_clock.now_ms(), alive=True, peers=[])

    monkeypatch.setattr(bench.store, "beat", hang)
    beat = asyncio.ensure_future(bench.heartbeat.beat())
    await fake_clock.advance(1.49)
    assert not beat.done()
    await fake_clock.advance(0.02)
    assert beat.done()
    assert beat.result() is False
    assert not bench.health.ok
    assert not bench.lease.may_start()
    hanging.set()
    await fake_clock.settle()
    assert not bench.lease.may_start(), "an answer that nobody waited for renews nothing"


async def test_who_reads_that_it_was_declared_lost_says_so(bench, fake_clock):
    bench.store.script("beat", Beat(now=fake_clock.now_ms(), alive=False, peers=[]))
    await bench.heartbeat.beat()
    assert bench.lost.is_set()
    assert not bench.lease.may_start()


async def test_orders_are_passed_on(bench, fake_clock):
    order = Order(run_id="1-1", token=1, what="cancel")
    bench.store.script("poll_orders", bench.says(order))
    step = asyncio.ensure_future(bench.orders.step())
    await fake_clock.advance(0.001)
    assert step.done(), "the first look is at once, for the time"
    assert bench.mailbox.take_all() == [OrdersRead([order])]


async def test_news_are_asked_for_again_and_again(bench, fake_clock):
    for number in range(1, 4):
        step = asyncio.ensure_future(bench.orders.step())
        await fake_clock.advance(ORDERS_EVERY)
        assert step.done()
        assert len(bench.store.asked_for("poll_orders")) == number


async def test_news_tell_the_time_more_closely_than_a_beat(bench, fake_clock):
    """A beat's stamp is taken before its commit and arrives after it, and is rounded; what the window keeps is this."""
    await fake_clock.advance(0.0007)
    bench.time.observe(fake_clock.now_ms(), fake_clock.monotonic(), fake_clock.monotonic() + 0.008)
    assert bench.time.now_us() == fake_clock.now_us() - 8700
    bench.store.script("poll_orders", bench.says())
    await bench.orders.step()
    assert bench.time.now_us() == fake_clock.now_us()


async def test_without_an_answer_the_time_is_what_it_was(bench, fake_clock):
    bench.time.observe(fake_clock.now_ms(), 0.0, 0.0)
    bench.store.script("poll_orders", AWAY)
    step = asyncio.ensure_future(bench.orders.step())
    await fake_clock.advance(0.2)
    assert step.done()
    assert bench.time.now_us() == fake_clock.now_us()


async def test_a_hint_reads_orders_at_once(bench, fake_clock):
    bench.orders.hints.set()
    await bench.orders.step()
    assert bench.store.asked_for("poll_orders") == ["me"]
    assert bench.mailbox.take_all() == []


async def test_a_beat_looks_for_orders_too(bench, fake_clock):
    bench.orders.beat_said(False)
    step = asyncio.ensure_future(bench.orders.step())
    await fake_clock.advance(ORDERS_EVERY * 0.9)
    bench.store.script("beat", bench.alive())
    await bench.heartbeat.beat()
    await fake_clock.advance(ORDERS_EVERY * 0.9)
    assert step.done()
    assert bench.store.asked_for("poll_orders") == [], "the beat said that there are none"
    step = asyncio.ensure_future(bench.orders.step())
    await fake_clock.advance(ORDERS_EVERY * 0.2)
    assert step.done()
    assert bench.store.asked_for("poll_orders") == ["me"]


async def test_orders_that_a_beat_saw_are_read_at_once(bench, fake_clock):
    order = Order(run_id="1-1", token=1, what="recall")
    bench.store.script("poll_orders", bench.says(order))
    bench.store.script("beat", Beat(now=fake_clock.now_ms(), alive=True, peers=[], orders=True))
    await bench.heartbeat.beat()
    await bench.orders.step()
    assert bench.mailbox.take_all() == [OrdersRead([order])]


async def test_who_holds_nothing_asks_for_the_time_in_its_turn_and_at_no_hint(bench, fake_clock):
    bench.owned.release("1-1", 1)
    bench.orders.beat_said(False)
    bench.orders.hints.set()
    await bench.orders.step()
    assert bench.store.asked == []
    step = asyncio.ensure_future(bench.orders.step())
    await fake_clock.advance(ORDERS_EVERY)
    assert step.done()
    assert bench.store.asked_for("poll_orders") == ["me"]


async def test_orders_that_can_t_be_read_are_read_later(bench, fake_clock):
    bench.store.script("poll_orders", AWAY)
    bench.orders.hints.set()
    step = asyncio.ensure_future(bench.orders.step())
    await fake_clock.advance(0.2)
    assert step.done()
    assert not bench.health.ok


async def test_a_peer_that_stood_still_is_declared_lost_and_its_runs_taken_back(bench, fake_clock):
    await bench.beats(5, ("peer", 9))
    bench.store.script("reclaim", 2)
    await bench.failure_detector.look_around()
    assert bench.store.asked_for("declare_lost") == [("peer", 9)]
    assert len(bench.store.asked_for("reclaim")) == 2, "until there is nothing left"
    assert bench.look_times.wake.is_set()
    assert bench.store.asked_for("notify") == ["due"]
    await bench.failure_detector.look_around()
    assert bench.store.asked_for("declare_lost") == [("peer", 9)]
    assert len(bench.store.asked_for("reclaim")) == 2, "a beat says if there are others"


async def test_the_watchman_wakes_when_a_lease_ends_not_a_second_later(bench, fake_clock):
    await bench.beats(4, ("peer", 9))
    await fake_clock.advance(0.7)
    step = asyncio.ensure_future(bench.failure_detector.step())
    await fake_clock.advance(0.299)
    assert bench.store.asked_for("declare_lost") == []
    await fake_clock.advance(0.001)
    assert step.done()
    assert bench.store.asked_for("declare_lost") == [("peer", 9)]


async def test_orphans_that_a_beat_saw_are_taken_back_at_once_whoever_declared_the_loss(bench, fake_clock):
    for number in range(1, 4):
        step = asyncio.ensure_future(bench.failure_detector.step())
        bench.store.script("beat", Beat(now=fake_clock.now_ms(), alive=True, peers=[], orphans=True))
        await bench.heartbeat.beat()
        await fake_clock.settle()
        assert step.done()
        assert len(bench.store.asked_for("reclaim")) == number


async def test_nobody_asks_for_orphans_that_no_beat_saw(bench, fake_clock):
    step = asyncio.ensure_future(bench.failure_detector.step())
    bench.store.script("beat", bench.alive())
    await bench.heartbeat.beat()
    await fake_clock.advance(1.0)
    assert step.done()
    assert bench.store.asked_for("reclaim") == []


async def test_a_watchman_without_a_database_comes_back(bench, fake_clock):
    bench.store.script("reclaim", AWAY)
    bench.failure_detector.orphans.set()
    step = asyncio.ensure_future(bench.failure_detector.step())
    await fake_clock.advance(0.2)
    assert step.done()
    assert not bench.health.ok


def duties(bench: Bench, logs: LogFiles | None = None, retention_ms: int = 60_000) -> Duties:
    return Duties(
        "me",
        store=bench.store,
        clock=bench.clock,
        time=bench.time,
        health=bench.health,
        rng=bench.rng,
        retention_ms=retention_ms,
        logs=logs,
        free=bench.failure_detector.duty_free,
    )


async def test_who_has_the_duty_keeps_house_once_a_minute(bench, fake_clock):
    keeper = duties(bench)
    await keeper.look_after()
    await keeper.look_after()
    assert bench.store.asked_for("prune") == [1_700_000_000_000 - 60_000]
    assert len(bench.store.asked_for("ensure_partitions")) == 1
    await fake_clock.advance(MAINTENANCE_EVERY)
    await keeper.look_after()
    assert len(bench.store.asked_for("prune")) == 2


async def test_floors_are_looked_at_after_a_start_some_at_a_time(bench, fake_clock):
    bench.store.script("put_floors_right", (0, 50), (0, 100), (0, 0))
    keeper = duties(bench)
    for _ in range(5):
        await keeper.look_after()
    assert bench.store.asked_for("put_floors_right") == [0, 50, 100]
    await fake_clock.advance(FLOORS_EVERY)
    await keeper.look_after()
    assert bench.store.asked_for("put_floors_right") == [0, 50, 100, 0]


async def test_floors_are_all_looked_at_when_the_clock_was_set_back(bench):
    keeper = duties(bench)
    await keeper.look_after()
    bench.time.set_back = 1
    bench.store.script("put_floors_right", (20, 50), (20, 100), (3, 0))
    await keeper.look_after()
    await keeper.look_after()
    assert bench.store.asked_for("put_floors_right") == [0, 0, 50, 100]


async def test_who_notices_it_without_the_duty_remembers_it(bench):
    keeper = duties(bench)
    bench.time.set_back = 1
    bench.store.script("take_duty", False, True)
    await keeper.look_after()
    assert bench.store.asked_for("put_floors_right") == []
    await keeper.look_after()
    assert bench.store.asked_for("put_floors_right") == [0]


async def test_a_look_at_floors_that_failed_is_made_again(bench):
    keeper = duties(bench)
    bench.time.set_back = 1
    bench.store.script("put_floors_right", AWAY)
    with pytest.raises(StoreUnavailable):
        await keeper.look_after()
    await keeper.look_after()
    assert bench.store.asked_for("put_floors_right") == [0, 0]


async def test_who_has_not_the_duty_leaves_it(bench):
    bench.store.script("take_duty", False)
    await duties(bench).look_after()
    assert bench.store.asked_for("prune") == []


async def test_duties_wait_for_the_database(bench, fake_clock):
    bench.store.script("take_duty", AWAY)
    step = asyncio.ensure_future(duties(bench).step())
    await fake_clock.advance(5.0)
    assert step.done()
    assert not bench.health.ok


async def test_each_node_removes_its_own_old_logs(bench, fake_clock, tmp_path: Path):
    old = tmp_path / "job" / "1-1.log"
    old.parent.mkdir()
    old.write_text("long ago")
    fake_clock.step_wall(100 * 365 * 86_400_000)
    keeper = duties(bench, LogFiles(tmp_path, inline))
    await fake_clock.advance(3600)
    bench.store.script("take_duty", False)
    await keeper.look_after()
    assert not old.exists()


@pytest.mark.parametrize(("retention", "every"), [(1, 60), (10, 600), (60, 3600), (43_200, 3600)])
async def test_old_logs_are_looked_for_as_often_as_the_retention_lasts(
    bench, fake_clock, tmp_path: Path, retention: int, every: int
):
    """At most once an hour: with a short retention, files lay there for an hour nevertheless."""
    keeper = duties(bench, LogFiles(tmp_path, inline), retention * 60_000)
    fake_clock.step_wall(100 * 365 * 86_400_000)
    await fake_clock.advance(every)
    await keeper.look_after()
    old = tmp_path / "job" / "1-1.log"
    old.parent.mkdir(exist_ok=True)
    old.write_text("long ago")
    await fake_clock.advance(every - 1)
    await keeper.look_after()
    assert old.exists()
    await fake_clock.advance(1)
    await keeper.look_after()
    assert not old.exists()
