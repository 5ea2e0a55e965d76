"""A node claims only what it can run."""

from __future__ import annotations

import pytest

from onthedot.engine.claiming.capacity import Capacity, pool_of
from onthedot.engine.running.slot_pool import SlotPool


def slots(*offers: str, **capacities: int) -> Capacity:
    return Capacity(offers or ("webhook",), capacities=capacities, default=7, hold_most=5)


def test_kinds_have_rooms_of_their_own():
    many = slots("webhook", "function:reports", "function:mail", "command:backup", webhook=100, function=2)
    assert list(many.pools) == ["webhook", "function", "command"]
    assert many.pools["function"].capabilities == ["function:reports", "function:mail"]
    assert many.capacity == 100 + 2 + 7
    assert pool_of("webhook") == "webhook"


def test_no_more_is_claimed_than_may_be_held():
    pool = slots(webhook=100).pools["webhook"]
    assert pool.room == 5
    for _ in range(5):
        pool.hold()
    assert pool.room == 0


def test_no_more_is_claimed_than_could_start_at_once():
    pool = slots(webhook=3).pools["webhook"]
    for _ in range(2):
        pool.hold()
        assert pool.start()
    assert pool.room == 1
    pool.hold()
    assert pool.start()
    assert pool.room == 0
    pool.end()
    assert pool.room == 1


def test_held_and_running_exceed_the_capacity_by_a_quarter_at_most():
    """So that what is wanted now does not wait for slots that are only kept for later."""
    pool = slots(webhook=4).pools["webhook"]
    for _ in range(4):
        pool.hold()
    assert pool.room == 1
    pool.hold()
    assert pool.room == 0
    pool.let_go()
    assert pool.room == 1


def test_a_start_without_a_free_slot_is_refused():
    pool = slots(webhook=1).pools["webhook"]
    pool.hold()
    pool.hold()
    assert pool.start()
    assert not pool.start()
    assert (pool.held, pool.running) == (1, 1)


def test_says_once_that_enough_came_free():
    pool = Capacity(["webhook"], capacities={"webhook": 8}, default=1, hold_most=8).pools["webhook"]
    for _ in range(8):
        pool.hold()
        pool.start()
    assert not pool.end(), "nobody waits"
    pool.want_more()
    assert pool.wanted == 2
    assert pool.end()
    assert not pool.end()


def test_a_kind_nobody_offers_is_counted_somewhere():
    many = slots("webhook")
    assert many.of("webhook") is many.pools["webhook"]
    assert many.of("function") is many.pools["webhook"]


def test_a_node_that_only_serves_the_api_has_no_room():
    none = Capacity([], capacities={}, default=7, hold_most=5)
    assert (none.capacity, none.held, none.running) == (0, 0, 0)


def test_offers_may_change_while_it_runs():
    slots = Capacity(["webhook"], capacities={"function": 3}, default=7, hold_most=5)
    assert not slots.set_capabilities(["webhook"])
    assert slots.set_capabilities(["webhook", "function:a"])
    assert (slots.capacity, slots.pools["function"].capabilities) == (10, ["function:a"])
    pool = slots.pools["function"]
    pool.hold()
    assert slots.set_capabilities(["webhook", "function:a", "function:b"])
    assert slots.pools["function"] is pool
    assert (pool.held, pool.capabilities) == (1, ["function:a", "function:b"])
    pool.want_more()
    assert pool.let_go(), "a pool that came later says it too"


def test_a_pool_without_offers_counts_what_it_still_has():
    slots = Capacity(["webhook", "command:x"], capacities={}, default=7, hold_most=5)
    pool = slots.pools["command"]
    pool.hold()
    assert pool.start()
    assert slots.set_capabilities(["webhook"])
    assert (slots.of("command"), pool.capabilities, slots.running) == (pool, [], 1)
    assert slots.capacity == 7
    pool.end()
    assert slots.running == 0


def test_what_will_find_a_slot_in_a_moment_may_be_claimed_too():
    """Two slots, 10 ms a run: ten runs in 50 ms."""
    slots = Capacity(["function:a"], capacities={"function": 2}, default=1, hold_most=1000)
    pool = slots.of("function")
    assert (pool.soon, pool.room) == (0, 2)
    for _ in range(2):
        pool.hold()
        assert pool.start()
    assert pool.room == 0
    pool.end(0.010)
    assert pool.soon == 10
    assert pool.room == 11
    pool.want_more()
    assert pool.wanted == 3, "a quarter of what it gets through, not one by one"


def test_slow_ones_are_not_claimed_ahead_of_a_slot():
    slots = Capacity(["function:a"], capacities={"function": 2}, default=1, hold_most=1000)
    pool = slots.of("function")
    pool.hold()
    pool.start()
    pool.end(60.0)
    assert (pool.soon, pool.room) == (0, 2)


def test_a_run_that_waited_in_vain_ends_it():
    slots = Capacity(["function:a"], capacities={"function": 2}, default=1, hold_most=1000)
    pool = slots.of("function")
    pool.hold()
    pool.start()
    pool.end(0.001)
    assert pool.soon == 100
    pool.stuck()
    assert (pool.soon, pool.room) == (0, 2)


def test_never_more_than_may_be_held():
    slots = Capacity(["webhook"], capacities={"webhook": 1000}, default=1, hold_most=50)
    pool = slots.of("webhook")
    pool.hold()
    pool.start()
    pool.end(0.001)
    assert (pool.soon, pool.room) == (50, 50)


def test_a_kind_that_sends_ahead_takes_more_while_it_says_so():
    ahead = {"function": 3}
    many = Capacity(
        ["function:reports", "webhook"],
        capacities={"function": 2},
        default=7,
        hold_most=50,
        ahead=lambda kind: ahead.get(kind, 0),
    )
    pool = many.pools["function"]
    assert pool.room == 5
    for _ in range(5):
        pool.hold()
        assert pool.start()
    pool.hold()
    assert not pool.start()
    ahead["function"] = 0
    for _ in range(3):
        pool.end()
        assert not pool.start()
        assert pool.room == 0
    pool.end()
    assert pool.start()
    assert many.capacity == 2 + 7
    assert many.pools["webhook"].room == 7


def test_what_a_target_takes_ahead_is_not_claimed_twice():
    """It has counted what it gets through in a moment: as much again would wait for a slot until it is given back."""
    ahead = {"function": 100}
    slots = Capacity(
        ["function:a"],
        capacities={"function": 2},
        default=1,
        hold_most=1000,
        ahead=lambda kind: ahead.get(kind, 0),
    )
    pool = slots.of("function")
    pool.hold()
    pool.start()
    pool.end(0.0001)
    assert (pool.soon, pool.room) == (0, 102)
    ahead["function"] = 0
    assert pool.soon == 200


def test_a_quarter_of_the_slots_is_never_the_backlogs():
    pool = SlotPool("webhook", ["webhook"], 8, 100)
    assert pool.backlog.room(4, pool.most) == 4
    for n in range(5):
        pool.hold()
        assert pool.start()
        pool.backlog.add(f"{n}-1")
    assert pool.backlog.room(4, pool.most) == 1
    pool.hold()
    assert pool.start()
    pool.backlog.add("5-1")
    assert pool.backlog.room(1, pool.most) == 0
    assert pool.room == 2  # for what is on time
    assert not pool.end(None, "0-1")
    assert pool.end(None, "1-1")  # a quarter of what it may have is free again
    assert not pool.end(None, "2-1")
    assert pool.backlog.room(2, pool.most) == 2


@pytest.mark.parametrize(("slots", "most"), [(1, 1), (2, 1), (3, 2), (4, 3), (1000, 750)])
def test_a_backlog_moves_on_with_one_slot_and_leaves_one_of_two(slots, most):
    pool = SlotPool("webhook", ["webhook"], slots, 2000)
    assert pool.backlog.room(5000, pool.most) == most


def test_who_holds_a_run_of_the_backlog_and_gives_it_back_has_room_again():
    pool = SlotPool("webhook", ["webhook"], 2, 100)
    pool.hold()
    pool.backlog.add("1-1")
    assert pool.backlog.room(1, pool.most) == 0
    pool.let_go("1-1")
    assert pool.backlog.room(1, pool.most) == 1
