"""Who waits for a slot: in their order, and nothing is left of a pool that nobody waits for."""

from __future__ import annotations

from onthedot.engine.claiming.slot_waiters import Standby
from tests.engine.making import claimed


def test_who_came_first_goes_first():
    standby = Standby()
    runs = [claimed(f"{n}-5", due_at=5) for n in range(3)]
    for run in runs:
        standby.add("webhook", run)
    assert [standby.first("webhook") for _ in runs] == runs
    assert "webhook" not in standby
    assert not standby


def test_pools_do_not_wait_for_each_other():
    standby = Standby()
    hook, function = claimed("1-5", due_at=5), claimed("2-5", due_at=5)
    standby.add("webhook", hook)
    standby.add("function", function)
    assert standby.first("function") is function
    assert standby.first("webhook") is hook


def test_who_is_dropped_waits_no_more_and_is_told_apart_from_who_never_did():
    standby = Standby()
    standby.add("webhook", claimed("1-5", due_at=5))
    assert not standby.drop("webhook", "2-5")
    assert not standby.drop("function", "1-5")
    assert standby.drop("webhook", "1-5")
    assert not standby.drop("webhook", "1-5")
    assert not standby
