"""The heap: the first to fire first, nothing before its instant."""

from __future__ import annotations

from onthedot.engine.claiming.due_heap import Agenda
from tests.engine.making import claimed


def test_pops_in_the_order_of_instants_and_not_before():
    agenda = Agenda()
    late, soon = claimed("1-3000", due_at=3000), claimed("2-2000", due_at=2000)
    agenda.push(late, 3000)
    agenda.push(soon, 2000)
    assert agenda.head == 2000
    assert agenda.pop(1_999_999) is None
    assert agenda.pop(2_000_000) is soon
    assert agenda.pop(2_000_000) is None
    assert agenda.pop(3_000_000) is late
    assert agenda.head is None


def test_equal_instants_keep_the_order_of_the_claim():
    agenda = Agenda()
    runs = [claimed(f"{n}-1000", due_at=1000) for n in range(5)]
    for run in runs:
        agenda.push(run, 1000)
    assert [agenda.pop(1_000_000) for _ in runs] == runs


def test_a_new_first_one_rings_and_a_later_one_does_not():
    rung = []
    agenda = Agenda(earlier=lambda: rung.append(agenda.head))
    agenda.push(claimed("1-5", due_at=5), 5)
    agenda.push(claimed("2-9", due_at=9), 9)
    agenda.push(claimed("3-1", due_at=1), 1)
    assert rung == [5, 1]


def test_a_removed_run_is_not_fired():
    agenda = Agenda()
    first, second = claimed("1-5", due_at=5), claimed("2-9", due_at=9)
    agenda.push(first, 5)
    agenda.push(second, 9)
    assert agenda.remove("1-5") is first
    assert agenda.remove("1-5") is None
    assert agenda.head == 9
    assert len(agenda) == 1
    assert agenda.pop(5000) is None


def test_a_run_that_comes_back_with_another_token_is_the_new_one():
    agenda = Agenda()
    old, new = claimed("1-5", due_at=5, token=1), claimed("1-5", due_at=5, token=2)
    agenda.push(old, 5)
    agenda.remove("1-5")
    agenda.push(new, 5)
    assert agenda.get("1-5") is new
    assert agenda.pop(5000) is new
    assert agenda.pop(5000) is None


def test_clear_returns_what_was_held():
    agenda = Agenda()
    runs = [claimed(f"{n}-5", due_at=5) for n in range(3)]
    for run in runs:
        agenda.push(run, 5)
    agenda.remove(runs[1].id)
    assert agenda.clear() == [runs[0], runs[2]]
    assert agenda.head is None


def test_who_takes_the_place_of_one_with_its_name_moves_the_head():
    agenda = Agenda()
    agenda.push(claimed("1-5", due_at=5, token=1), 5)
    agenda.push(claimed("1-5", due_at=5, token=2), 9)
    assert agenda.head == 9
    assert len(agenda) == 1


def test_the_head_is_never_a_removed_one_however_deep_it_lies():
    agenda = Agenda()
    for n in range(1, 6):
        agenda.push(claimed(f"{n}-{n}", due_at=n), n)
    for n in (2, 3):
        agenda.remove(f"{n}-{n}")
    assert agenda.head == 1
    assert agenda.pop(1000) is not None
    assert agenda.head == 4
