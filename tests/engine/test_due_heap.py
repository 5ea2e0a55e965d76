"""The heap: the first to fire first, nothing before its instant."""

from __future__ import annotations

from onthedot.engine.claiming.due_heap import DueHeap
from onthedot.engine.mailbox import Signal
from tests.engine.making import claimed


def test_pops_in_the_order_of_instants_and_not_before():
    due_heap = DueHeap()
    late, soon = claimed("1-3000", due_at=3000), claimed("2-2000", due_at=2000)
    due_heap.push(late, 3000)
    due_heap.push(soon, 2000)
    assert due_heap.head == 2000
    assert due_heap.pop(1_999_999) is None
    assert due_heap.pop(2_000_000) is soon
    assert due_heap.pop(2_000_000) is None
    assert due_heap.pop(3_000_000) is late
    assert due_heap.head is None


def test_equal_instants_keep_the_order_of_the_claim():
    due_heap = DueHeap()
    runs = [claimed(f"{n}-1000", due_at=1000) for n in range(5)]
    for run in runs:
        due_heap.push(run, 1000)
    assert [due_heap.pop(1_000_000) for _ in runs] == runs


async def test_a_new_first_one_wakes_and_a_later_one_does_not():
    wake = Signal()
    due_heap = DueHeap(wake)
    for run, at, wakes in (("1-5", 5, True), ("2-9", 9, False), ("3-1", 1, True)):
        due_heap.push(claimed(run, due_at=at), at)
        assert wake.is_set() is wakes
        if wakes:
            await wake.wait()


def test_a_removed_run_is_not_fired():
    due_heap = DueHeap()
    first, second = claimed("1-5", due_at=5), claimed("2-9", due_at=9)
    due_heap.push(first, 5)
    due_heap.push(second, 9)
    assert due_heap.remove("1-5") is first
    assert due_heap.remove("1-5") is None
    assert due_heap.head == 9
    assert len(due_heap) == 1
    assert due_heap.pop(5000) is None


def test_a_run_that_comes_back_with_another_token_is_the_new_one():
    due_heap = DueHeap()
    old, new = claimed("1-5", due_at=5, token=1), claimed("1-5", due_at=5, token=2)
    due_heap.push(old, 5)
    due_heap.remove("1-5")
    due_heap.push(new, 5)
    assert due_heap.get("1-5") is new
    assert due_heap.pop(5000) is new
    assert due_heap.pop(5000) is None


def test_clear_returns_what_was_held():
    due_heap = DueHeap()
    runs = [claimed(f"{n}-5", due_at=5) for n in range(3)]
    for run in runs:
        due_heap.push(run, 5)
    due_heap.remove(runs[1].id)
    assert due_heap.clear() == [runs[0], runs[2]]
    assert due_heap.head is None


def test_who_takes_the_place_of_one_with_its_name_moves_the_head():
    due_heap = DueHeap()
    due_heap.push(claimed("1-5", due_at=5, token=1), 5)
    due_heap.push(claimed("1-5", due_at=5, token=2), 9)
    assert due_heap.head == 9
    assert len(due_heap) == 1


def test_the_head_is_never_a_removed_one_however_deep_it_lies():
    due_heap = DueHeap()
    for n in range(1, 6):
        due_heap.push(claimed(f"{n}-{n}", due_at=n), n)
    for n in (2, 3):
        due_heap.remove(f"{n}-{n}")
    assert due_heap.head == 1
    assert due_heap.pop(1000) is not None
    assert due_heap.head == 4
