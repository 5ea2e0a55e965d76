"""Who waits for a slot: in their order, and nothing is left of a pool that nobody waits for."""

from __future__ import annotations

from onthedot.engine.claiming.slot_waiters import SlotWaiters
from tests.engine.making import claimed


def test_who_came_first_goes_first():
    slot_waiters = SlotWaiters()
    runs = [claimed(f"{n}-5", due_at=5) for n in range(3)]
    for run in runs:
        slot_waiters.add("webhook", run)
    assert [slot_waiters.first("webhook") for _ in runs] == runs
    assert "webhook" not in slot_waiters
    assert not slot_waiters


def test_pools_do_not_wait_for_each_other():
    slot_waiters = SlotWaiters()
    hook, function = claimed("1-5", due_at=5), claimed("2-5", due_at=5)
    slot_waiters.add("webhook", hook)
    slot_waiters.add("function", function)
    assert slot_waiters.first("function") is function
    assert slot_waiters.first("webhook") is hook


def test_who_is_dropped_waits_no_more_and_is_told_apart_from_who_never_did():
    slot_waiters = SlotWaiters()
    slot_waiters.add("webhook", claimed("1-5", due_at=5))
    assert not slot_waiters.drop("webhook", "2-5")
    assert not slot_waiters.drop("function", "1-5")
    assert slot_waiters.drop("webhook", "1-5")
    assert not slot_waiters.drop("webhook", "1-5")
    assert not slot_waiters
