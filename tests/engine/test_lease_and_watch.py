"""Who may start, who is lost: monotonic clocks only."""

from __future__ import annotations

from onthedot.engine.mailbox import Signal
from onthedot.engine.membership.lease import Lease
from onthedot.engine.membership.peer_beats import PeerBeats
from onthedot.engine.tuning import orders_valid


async def test_nothing_starts_before_the_first_beat(fake_clock):
    assert not Lease(fake_clock, 5.0).may_start()


async def test_a_node_starts_until_a_second_before_the_lease_ends(fake_clock):
    lease = Lease(fake_clock, 5.0)
    lease.renew(fake_clock.monotonic())
    await fake_clock.advance(3.999)
    assert lease.may_start()
    await fake_clock.advance(0.002)
    assert not lease.may_start()


async def test_the_lease_counts_from_sending_not_from_the_answer(fake_clock):
    lease = Lease(fake_clock, 5.0)
    await fake_clock.advance(10)
    lease.renew(7.0)  # sent at 7, answered at 10
    assert lease.may_start()
    await fake_clock.advance(1.0)
    assert not lease.may_start()


async def test_who_was_refused_is_told_when_starting_is_allowed_again(fake_clock):
    wake = Signal()
    lease = Lease(fake_clock, 5.0, wake=wake)
    lease.renew(0.0)
    assert not wake.is_set()
    await fake_clock.advance(6)
    assert not lease.may_start()
    lease.renew(6.0)
    assert wake.is_set()
    await wake.wait()
    lease.renew(6.5)
    assert not wake.is_set()


async def test_what_was_read_of_orders_holds_for_a_while(fake_clock):
    wake = Signal()
    lease = Lease(fake_clock, 60.0, wake=wake, orders_valid=orders_valid(2.0))
    lease.renew(0.0)  # nothing was held before: no orders either
    await fake_clock.advance(2.2)
    assert lease.may_start()
    lease.renew(2.2)  # a beat alone says nothing of orders
    await fake_clock.advance(0.1)
    assert not lease.may_start()
    assert not wake.is_set()
    lease.heard(2.3)
    assert wake.is_set()
    assert lease.may_start()
    lease.heard(1.0)  # an answer that was overtaken
    await fake_clock.advance(2.2)
    assert lease.may_start()


def test_as_long_as_runs_are_held_ahead():
    assert orders_valid(0.0) == orders_valid(2.0) == 2.25
    assert orders_valid(10.0) == 10.25


def watched(*beats: tuple[float, int]) -> PeerBeats:
    watch = PeerBeats(5.0)
    for at, beat in beats:
        watch.observe(at, [("peer", beat)])
    return watch


def test_a_beat_that_stood_still_for_a_lease_is_suspect():
    watch = watched(*((float(second), 7) for second in range(6)))
    assert watch.suspects(4.999) == []
    assert watch.suspects(5.0) == [("peer", 7)]


def test_a_beat_that_moved_is_alive():
    watch = watched(*((float(second), 7 + (second >= 4)) for second in range(6)))
    assert watch.suspects(6.0) == []
    assert watch.next_deadline() == 9.0


def test_a_gap_in_our_own_beats_restarts_the_watch():
    """The database was away, perhaps for everybody: nobody robs anybody."""
    watch = watched((0.0, 7), (1.0, 7), (10.0, 7))
    assert watch.suspects(10.0) == []
    for second in (11.0, 12.0, 13.0, 14.0):
        watch.observe(second, [("peer", 7)])
        assert watch.suspects(second) == []
    watch.observe(15.0, [("peer", 7)])
    assert watch.suspects(15.0) == [("peer", 7)]


def test_a_short_lease_has_a_shorter_gap():
    watch = PeerBeats(2.0)
    watch.observe(0.0, [("peer", 7)])
    watch.observe(1.0, [("peer", 7)])  # a gap of 1 s is half of this lease
    assert watch.suspects(1.0) == []
    assert watch.next_deadline() == 3.0


def test_a_watcher_that_was_frozen_declares_nobody():
    watch = watched(*((float(second), 7) for second in range(5)))
    assert watch.suspects(100.0) == []  # thawed: its own last beat is 96 s old
    assert watch.next_deadline() == 105.0


def test_a_peer_that_left_is_not_watched():
    watch = watched((0.0, 7))
    watch.observe(1.0, [])
    assert watch.suspects(2.0) == []
    assert watch.next_deadline() is None


def test_a_declared_peer_is_forgotten():
    watch = watched(*((float(second), 7) for second in range(6)))
    watch.forget("peer")
    assert watch.suspects(6.0) == []
