"""Destinations in the engine: no more calls of one than it may have, none while its breaker is open, and back again."""

from __future__ import annotations

import random
from typing import Any

import pytest

from onthedot.clock import FakeClock
from onthedot.engine.claiming.node_offers import NodeOffers
from onthedot.engine.claiming.waiting_watch import WaitingWatch
from onthedot.engine.look_times import LookTimes
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.messages import Claimed, Return
from onthedot.engine.running.destinations import Destinations
from onthedot.engine.tuning import CLAIM_AGAIN, DESTINATIONS_KNOWN, DESTINATIONS_MOST, NO_SLOT_MS
from onthedot.model.destination import DestinationLoad, waits_range
from onthedot.model.duration import Duration
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.model.targets import WebhookTarget
from onthedot.plan.breaker import FAILURES, IDLE, PROBE_EVERY
from onthedot.store import Finished, Order, TurnedAway, WaitingSeen
from onthedot.targets.contract import Profile
from onthedot.telemetry import Event, subscribe
from tests.engine.making import FAILED, OK, Desk, FakeSender, claimed
from tests.engine.scripted import AWAY, ScriptedStore
from tests.engine.test_dispatcher import Bench

TIMEOUT = Outcome(kind="timeout", retryable=True, error="timed out")
GONE = Outcome(kind="error", error="no such page")
A, B = "webhook@http://a", "webhook@http://b"
LIMITED = Profile(has_destinations=True)


class Hosts(Desk):
    """Calls go to the host of the URL, and end when the test says so."""

    def __init__(self, sender: FakeSender, profile: Profile = LIMITED) -> None:
        super().__init__(sender, begins=True, profile=profile)

    def destination(self, target: WebhookTarget) -> str | None:
        return "/".join(target.url.split("/")[:3])

    def end(self, run_id: str, outcome: Outcome = OK) -> None:
        (started,) = [each for each in self.calls if each.call.run_id == run_id and each._done is not None]
        started.tell(outcome)


class Town(Bench):
    """A node whose webhooks go to hosts: eight calls at once, two of them of one host while less than half are free."""

    def __init__(self, clock: FakeClock, **settings: Any) -> None:
        super().__init__(clock, **{"concurrency": 8, "next_job_count": 40, **settings})
        self.store.script("claim", *[self.claim() for _ in range(99)])

    def furnish(self) -> None:
        self.hosts = Hosts(self.sender)

    @property
    def destinations(self) -> Destinations:
        return self.wiring.destinations

    def to(self, host: str, *numbers: int, **more: Any) -> list[ClaimedRun]:
        target = WebhookTarget(url=f"http://{host}/hook")
        return [self.run(f"{number}-1", target=target, **more) for number in numbers]

    async def patience_ends(self) -> None:
        """Long enough to see that a destination does not get through those that wait for it."""
        for _ in range(5):
            await self.moment()

    async def moment(self) -> None:
        """As long as a held run waits for a slot."""
        await self.clock.advance(NO_SLOT_MS / 1000)
        self.beat()
        self.dispatcher.tick()
        await self.clock.settle()

    def away(self) -> list[str]:
        """Who was sent to wait in the store, and where."""
        return [f"{item.run_id} {item.requires}" for item in self.written if isinstance(item, TurnedAway)]

    def found(self, requires: str, *runs: ClaimedRun, limit: int = 100) -> None:
        """A claim for that destination brought these."""
        for run in runs:
            self.wiring.owned.add(run.id, run.token)
        self.dispatcher.handle(Claimed([(requires, limit, self.claim(*runs))]))

    async def fail(self, host: str, first: int = 100, times: int = FAILURES, outcome: Outcome = FAILED) -> None:
        for number in range(first, first + times):
            self.take(*self.to(host, number))
            self.hosts.end(f"{number}-1", outcome)
        await self.clock.settle()
        _ = self.written

    def breaker(self, requires: str = A) -> str:
        return {load.requires: load.breaker for load in self.report()}.get(requires, "closed")

    def report(self) -> list[DestinationLoad]:
        return self.destinations.report(64, lambda instant: round(instant * 1000))


class Village(Town):
    """Its webhooks could name their hosts, and have no destinations."""

    def furnish(self) -> None:
        self.hosts = Hosts(self.sender, Profile())


@pytest.fixture
def town(fake_clock: FakeClock) -> Town:
    return Town(fake_clock)


# the limit


async def test_one_destination_alone_has_half_of_the_slots(town: Town):
    town.take(*town.to("a", *range(8)))
    assert town.hosts.names == [f"{n}-1" for n in range(5)]
    town.take(*town.to("b", 10, 11, 12))
    assert town.hosts.names[5:] == ["10-1", "11-1"], "of its own it has two, whatever the other holds"


async def test_what_finds_no_room_starts_when_a_call_of_its_destination_ends(town: Town):
    town.take(*town.to("a", *range(7)))
    town.hosts.end("0-1")
    assert town.hosts.names == [f"{n}-1" for n in range(6)]
    town.hosts.end("3-1")
    assert town.hosts.names[6:] == ["6-1"]
    assert town.away() == []


async def test_after_a_moment_it_waits_in_the_store(town: Town):
    town.take(*town.to("a", *range(7)))
    assert town.slots.held == 2
    await town.patience_ends()
    assert town.away() == ["5-1 " + A, "6-1 " + A]
    assert (town.slots.held, len(town.dispatcher.running)) == (0, 5)


async def test_one_that_hangs_is_not_waited_for_longer_than_a_slot(town: Town):
    """Another node may have room there."""
    town.take(*town.to("a", *range(6)))
    await town.moment()
    assert town.away() == ["5-1 " + A]


async def test_who_finds_room_at_its_destination_and_no_slot_goes_back_to_all_nodes(fake_clock: FakeClock):
    """The machine has run out of something meanwhile, so that there are fewer slots than before."""
    town = Town(fake_clock, destination_concurrency=3)
    town.take(*town.to("a", *range(6)), *town.to("b", 10, 11, 12))
    town.slots.of("webhook").squeeze(0.0, "descriptors")
    for number in range(3):
        town.hosts.end(f"{number}-1")
    await town.moment()
    assert [item.run_id for item in town.written if isinstance(item, Return)] == ["5-1"]


async def test_of_two_slots_one_destination_has_both_and_the_rest_goes_back_to_all_nodes(fake_clock: FakeClock):
    """No limit is less than the pool: who finds no slot here is not looked for as who waits for a destination."""
    town = Town(fake_clock, concurrency=2)
    town.take(*town.to("a", *range(3)))
    assert town.hosts.names == ["0-1", "1-1"]
    await town.patience_ends()
    assert [(item.run_id, item.token) for item in town.written if isinstance(item, Return)] == [("2-1", 1)]
    assert town.away() == []


async def test_a_kind_without_destinations_has_none_to_wait_for(fake_clock: FakeClock):
    town = Village(fake_clock)
    town.take(*town.to("a", *range(11)))
    for number in range(3):
        town.hosts.end(f"{number}-1")
    assert town.hosts.names[8:] == ["8-1", "9-1", "10-1"], "whoever waited for a slot has one"
    await town.patience_ends()
    assert town.away() == [], "nobody would look there for them"


async def test_they_wait_here_for_a_destination_that_gets_through_them(town: Town):
    """Otherwise half of each claim of a drain to one receiver would go back to the store and come again."""
    numbers = iter(range(100))
    runs = [next(numbers) for _ in range(11)]
    town.take(*town.to("a", *runs))
    for _ in range(20):
        for _ in range(2):
            busy = [started.call.run_id for started in town.hosts.calls if started._done is not None]
            town.hosts.end(busy[0])
            town.take(*town.to("a", next(numbers)))
        await town.clock.advance(NO_SLOT_MS / 1000)
        town.beat()
        town.dispatcher.tick()
    assert town.away() == []
    assert town.slots.held == 6


async def test_it_says_which_version_of_its_job_and_until_when_it_may_wait(town: Town, fake_clock: FakeClock):
    town.take(*town.to("a", *range(6), expires_in=Duration(9000)))
    for _ in range(6):
        await town.wiring.gate.step() if len(town.wiring.gate.mailbox) else None
    await town.patience_ends()
    (away,) = [item for item in town.written if isinstance(item, TurnedAway)]
    assert away == TurnedAway(run_id="5-1", token=1, version=1, requires=A, until=town.now + 9001)


async def test_others_start_meanwhile(town: Town):
    town.take(*town.to("a", *range(7)), *town.to("b", 10), *town.to("c", 20))
    assert town.hosts.names[5:] == ["10-1", "20-1"]


async def test_a_setting_of_its_own(fake_clock: FakeClock):
    town = Town(fake_clock, destination_concurrency=1)
    town.take(*town.to("a", *range(5)), *town.to("b", 10, 11))
    assert town.hosts.names == ["0-1", "1-1", "2-1", "3-1", "4-1", "10-1"]


async def test_while_less_than_half_is_free_only(town: Town):
    town.take(*town.to("b", 10, 11), *town.to("c", 20, 21))
    town.take(*town.to("a", *range(4)))
    assert town.hosts.names[4:] == ["0-1", "1-1"]
    for run_id in ("10-1", "11-1"):
        town.hosts.end(run_id)
    await town.patience_ends()
    assert town.hosts.names[6:] == ["2-1"], "half is free again"
    assert town.away() == ["3-1 " + A]


async def test_a_cancelled_or_recalled_waiter_waits_no_more(town: Town):
    from onthedot.engine.messages import OrdersRead

    town.take(*town.to("a", *range(7)))
    orders = [Order(run_id="5-1", token=1, what="recall"), Order(run_id="6-1", token=1, what="cancel")]
    town.dispatcher.handle(OrdersRead(orders))
    back, cancelled = town.written
    assert back == Return("5-1", 1)
    assert isinstance(cancelled, Finished)
    town.hosts.end("0-1")
    assert town.hosts.names == [f"{n}-1" for n in range(5)]
    assert town.slots.held == 0


async def test_tenants_do_not_share_a_destination(town: Town):
    import msgspec

    town.take(*town.to("a", *range(6)))
    others = [msgspec.structs.replace(run, tenant=2) for run in town.to("a", 10, 11, 12)]
    town.take(*others)
    assert town.hosts.names[5:] == ["10-1", "11-1"]
    await town.patience_ends()
    assert town.away() == ["5-1 " + A, "12-1 webhook@#2/http://a"]


# the breaker


async def test_ten_failures_in_a_row_open_it(town: Town):
    events: list[Event] = []
    end = subscribe(events.append)
    await town.fail("a", times=FAILURES - 1)
    assert town.breaker() == "closed"
    await town.fail("a", first=200, times=1, outcome=TIMEOUT)
    end()
    assert town.breaker() == "open"
    (opened,) = [event for event in events if event.name == "destination.opened"]
    assert opened.fields == {"tenant": 1, "destination": "http://a", "failures": 10, "error": "timed out"}
    before = len(town.hosts.names)
    town.take(*town.to("a", 1, 2), *town.to("b", 3))
    assert town.hosts.names[before:] == ["3-1"]
    assert town.away() == ["1-1 " + A, "2-1 " + A]


@pytest.mark.parametrize("outcome", [OK, GONE, Outcome(kind="refused")])
async def test_other_ends_are_no_failures(town: Town, outcome: Outcome):
    await town.fail("a", times=30, outcome=outcome)
    assert town.breaker() == "closed"


async def test_a_probe_goes_out_after_ten_seconds_and_closes_it(town: Town, fake_clock: FakeClock):
    await town.fail("a")
    await fake_clock.advance(PROBE_EVERY)
    town.beat()
    before = len(town.hosts.names)
    town.take(*town.to("a", 1, 2))
    assert town.hosts.names[before:] == ["1-1"]
    assert town.away() == ["2-1 " + A]
    assert town.breaker() == "half_open"
    town.hosts.end("1-1")
    assert town.breaker() == "closed"
    town.take(*town.to("a", 3, 4))
    assert town.hosts.names[before:] == ["1-1", "3-1", "4-1"]


async def test_a_probe_that_fails_is_followed_by_the_next_after_ten_seconds(town: Town, fake_clock: FakeClock):
    await town.fail("a")
    for number in (1, 2, 3):
        await fake_clock.advance(PROBE_EVERY)
        town.beat()
        before = len(town.hosts.names)
        town.take(*town.to("a", number, 10 + number))
        assert town.hosts.names[before:] == [f"{number}-1"]
        town.hosts.end(f"{number}-1", FAILED)
        assert town.away() == [f"{10 + number}-1 " + A]


async def test_a_probe_that_was_recalled_says_nothing(town: Town, fake_clock: FakeClock):
    await town.fail("a")
    await fake_clock.advance(PROBE_EVERY)
    town.beat()
    town.take(*town.to("a", 1))
    town.dispatcher.running["1-1"].stop("gone")
    assert town.breaker() == "open"
    before = len(town.hosts.names)
    town.take(*town.to("a", 2))
    assert town.hosts.names[before:] == ["2-1"]


async def test_at_most_once_is_turned_away_before_it_is_recorded_as_begun(town: Town):
    await town.fail("a")
    town.take(*town.to("a", 1, delivery="at_most_once"))
    assert town.away() == ["1-1 " + A]
    assert len(town.wiring.gate.mailbox) == 0


async def test_what_has_expired_ends_and_does_not_wait(town: Town):
    await town.fail("a")
    town.take(*town.to("a", 1, due_in=-5000, expires_in=Duration(1000)))
    (finished,) = town.written
    assert isinstance(finished, Finished)
    assert finished.outcome.kind == "expired"


# what waits in the store


def asked(town: Town) -> list[tuple[list[str], int]]:
    """By the last look, for destinations."""
    found = [(offers, limit) for offers, limit in town.store.asked_for("claim") if "@" in offers[0]]
    town.store.asked.clear()
    return found


async def test_a_claim_asks_for_what_waits_with_the_room_there(town: Town):
    await town.look()
    assert asked(town) == []
    town.destinations.waits(A)
    await town.look()
    assert asked(town) == [([A], 4)]
    await town.look()
    assert asked(town) == [], "nothing was there"


async def test_as_long_as_there_is_something(town: Town):
    town.destinations.waits(A)
    town.take(*town.to("b", 1, 2), *town.to("c", 3, 4), *town.to("d", 5))
    town.found(A, *town.to("a", 10, 11), limit=2)
    assert town.hosts.names[5:] == ["10-1", "11-1"]
    await town.look()
    assert asked(town) == [], "it has two calls, and no room"
    town.hosts.end("10-1")
    await town.look()
    assert asked(town) == [([A], 1)]


async def test_new_ones_leave_room_to_those_that_wait(town: Town):
    town.take(*town.to("b", 1, 2), *town.to("c", 3, 4), *town.to("d", 5))
    town.destinations.waits(A)
    town.take(*town.to("a", 10, 11))
    assert town.hosts.names[5:] == ["10-1"]
    town.found(A, *town.to("a", 12), limit=1)
    assert town.hosts.names[6:] == ["12-1"]


async def test_while_the_breaker_is_open_one_is_asked_for_when_a_probe_is_due(town: Town, fake_clock: FakeClock):
    await town.fail("a")
    town.destinations.waits(A)
    await town.look()
    assert asked(town) == []
    await fake_clock.advance(PROBE_EVERY)
    town.beat()
    await town.look()
    assert asked(town) == [([A], 1)]
    town.destinations.waits(A)
    town.found(A, *town.to("a", 1), limit=1)
    assert town.breaker() == "half_open"
    await town.look()
    assert asked(town) == []
    town.hosts.end("1-1")
    await town.look()
    assert asked(town) == [([A], 5)], "half of the slots"


async def test_what_the_claim_brings_too_much_goes_back_at_once(town: Town):
    town.take(*town.to("b", 1, 2), *town.to("c", 3, 4), *town.to("d", 5), *town.to("a", 6, 7))
    town.found(A, *town.to("a", 10), limit=1)
    assert town.away() == ["10-1 " + A]


async def test_the_recorder_tells_that_they_wait_once_it_is_written(town: Town, fake_clock: FakeClock):
    await town.fail("a")
    town.take(*town.to("a", 1, 2))
    town.wiring.recorder.collect()
    town.store.script("wait_for_destinations", AWAY)
    assert not await town.wiring.recorder.write()
    assert town.wiring.owned.has("1-1", 1)
    assert await town.wiring.recorder.write()
    assert town.wiring.recorder.idle
    assert not town.wiring.owned.has("1-1", 1)
    assert [[run.run_id for run in runs] for runs in town.store.asked_for("wait_for_destinations")] == [
        ["1-1", "2-1"],
        ["1-1", "2-1"],
    ]
    assert town.destinations._waited_for.keys() == {A}


async def test_destinations_take_turns(fake_clock: FakeClock):
    town = Town(fake_clock)
    names = [f"webhook@http://{n}" for n in range(40)]
    for name in names:
        town.destinations.waits(name)
    pool, found = town.slots.pools["webhook"], list[str]()
    for _ in range(10):
        found += [requires for requires, _ in town.destinations.wanted(pool, ["webhook"], 4, 4)]
    assert set(found[:40]) <= set(names)
    assert len(found) >= 10
    assert town.destinations.wanted(pool, ["queue:x"], 4, 4) == []
    assert town.destinations.wanted(pool, ["webhook"], 0, 4) == []


# looking for what waits


async def test_the_watch_finds_what_others_turned_away_and_goes_on_after_the_last(town: Town):
    watch = town.wiring.waiting_watch
    assert watch is not None
    names = [f"webhook@http://{n:03}" for n in range(64)]
    low, high = waits_range("webhook")
    town.store.script("waited_for", WaitingSeen(requires=names, expired=False), WaitingSeen(requires=[A], expired=True))
    for _ in range(3):
        await watch.look()
    assert town.store.asked_for("waited_for") == [[(low, high)], [(names[-1], high)], [(low, high)]]
    assert town.destinations._waited_for.keys() == {*names, A}
    assert len(town.store.asked_for("release_expired_waiting")) == 1


async def test_the_watch_bears_with_a_store_that_is_away(fake_clock: FakeClock):
    sender = FakeSender("webhook")
    Hosts(sender)
    store, health = ScriptedStore(fake_clock), StoreHealth()
    store.script("waited_for", AWAY)
    destinations = Destinations(sender.targets, fake_clock, LookTimes(fake_clock))
    watch = WaitingWatch(
        waits=destinations.waits,
        offers=NodeOffers(sender.targets),
        store=store,
        clock=fake_clock,
        rng=random.Random(1),
        health=health,
    )
    import asyncio

    step = asyncio.get_running_loop().create_task(watch.step())
    await fake_clock.advance(1.0)
    await step
    assert not health.ok


# memory and report


async def test_a_million_destinations_are_not_remembered(town: Town):
    for number in range(3 * DESTINATIONS_KNOWN):
        town.destinations.of(claimed("1-1", target=WebhookTarget(url=f"http://host{number}/")))
    assert len(town.destinations._places) <= DESTINATIONS_KNOWN


async def test_not_even_of_those_that_fail(town: Town, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("onthedot.engine.running.destinations.DESTINATIONS_MOST", 2000)
    assert DESTINATIONS_MOST > 2000
    for number in range(4000):
        place = town.destinations.of(claimed("1-1", target=WebhookTarget(url=f"http://host{number}/")))
        assert place is not None
        place.breaker.failed(1.0, 1.0)
        town.destinations.waits(place.requires)
    assert len(town.destinations._places) <= 2001
    assert len(town.destinations._waited_for) <= 2001


async def test_one_with_open_calls_is_never_forgotten(town: Town):
    town.take(*town.to("a", 1))
    for number in range(3 * DESTINATIONS_KNOWN):
        town.destinations.of(claimed("1-1", target=WebhookTarget(url=f"http://host{number}/")))
    assert town.report() == [DestinationLoad(requires=A, in_flight=1)]


async def test_a_breaker_that_is_open_for_nobody_is_forgotten(town: Town, fake_clock: FakeClock):
    await town.fail("a")
    await fake_clock.advance(PROBE_EVERY + IDLE - 0.1)
    assert town.breaker() == "open"
    town.destinations.waits(A)
    await fake_clock.advance(0.2)
    assert town.breaker() == "open", "somebody waits"
    town.destinations.brought(A, 1, town.claim())
    assert town.breaker() == "closed"


async def test_behind_those_that_wait_for_their_lanes_are_others(town: Town, fake_clock: FakeClock):
    """A claim that brought none and says that there is more: the next one is not left to the poll."""
    look_times, now = town.wiring.look_times, fake_clock.monotonic()
    town.destinations.waits(A)
    look_times.looked(now, None, gap=1.0)
    town.destinations.brought(A, 1, town.claim(next_ready=town.claim().now))
    assert look_times.latest <= now + CLAIM_AGAIN
    look_times.looked(now, None, gap=1.0)
    town.destinations.brought(A, 1, town.claim())
    assert look_times.latest == now + 1.0, "that was all"


async def test_the_report_tells_how_long_the_last_calls_took(town: Town, fake_clock: FakeClock):
    """Also of a destination that is well, for a minute after its last call."""
    for number, seconds in ((1, 0.1), (2, 0.3), (3, 2.0)):
        town.take(*town.to("a", number))
        town.dispatcher.tick()
        await fake_clock.settle()
        await fake_clock.advance(seconds)
        town.hosts.end(f"{number}-1")
        await fake_clock.settle()
    (load,) = town.report()
    assert (load.calls, load.p50, load.p99, load.breaker) == (3, 300, 2000, "closed")
    await fake_clock.advance(61)
    assert town.report() == []


async def test_the_report_tells_how_many_calls_end_per_second(town: Town, fake_clock: FakeClock):
    town.take(*town.to("a", *range(1, 11)))
    town.dispatcher.tick()
    await fake_clock.settle()
    rates = []
    for number in range(1, 11):
        town.hosts.end(f"{number}-1")
        await fake_clock.settle()
        await fake_clock.advance(0.5)
        rates += [load.per_second for load in town.report()]
    assert rates[:3] == [None, 2.0, 2.0]
    await fake_clock.advance(2.5)
    assert [load.per_second for load in town.report()] == [1.0], "half of the way to none in half of the time"


async def test_the_report_names_those_in_trouble_first(town: Town, fake_clock: FakeClock):
    town.take(*town.to("b", 1, 2))
    await town.fail("a")
    report = town.report()
    assert [load.requires for load in report] == [A, B]
    since = round(fake_clock.monotonic() * 1000)
    told: dict[str, Any] = {"breaker": "open", "failures": 10, "since": since, "next_probe": since + 10_000}
    assert report[0] == DestinationLoad(requires=A, **told, calls=10, p50=0, p99=0)
    assert len(town.destinations.report(1, lambda instant: 0)) == 1
