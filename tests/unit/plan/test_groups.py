"""Whose turn it is in a concurrency group."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onthedot.model.duration import Duration
from onthedot.model.policy import Concurrency, Policy
from onthedot.plan import GroupState, InLine, laned, take_turns

lines = st.lists(st.builds(InLine, st.integers(0, 9), st.text("abc", min_size=1, max_size=3)), unique_by=lambda x: x.id)
states = st.builds(GroupState, limit=st.integers(1, 5), running=st.integers(0, 7))


@given(states, lines, st.data())
def test_as_many_as_there_is_room_and_the_oldest(state: GroupState, all_of_them: list[InLine], data: st.DataObject):
    kinds = [data.draw(st.integers(0, 2)) for _ in all_of_them]
    wanting, called, waiting = (
        [one for one, kind in zip(all_of_them, kinds, strict=True) if kind == n] for n in range(3)
    )
    turns = take_turns(state, wanting, called, sorted(waiting))
    chosen = {*turns.run, *turns.wake}
    assert len(turns.run) + len(turns.wake) <= state.room
    assert set(turns.run) <= {one.id for one in wanting}
    assert set(turns.wake) <= {one.id for one in waiting}
    left = [one for one in (*wanting, *waiting) if one.id not in chosen]
    if left:  # nobody is left while there is room, and nobody younger goes before
        older = [one for one in all_of_them if one.id in chosen or one in called]
        assert sum(one < min(left) for one in older) >= state.room or state.room == 0
        assert all(one < min(left) for one in older if one.id in chosen)


def test_no_room_below_none():
    assert GroupState(limit=1, running=3).room == 0
    assert take_turns(GroupState(limit=1, running=3), [InLine(1, "a")], [], [InLine(0, "b")]).run == []


def test_what_is_in_hand_is_not_woken():
    turns = take_turns(GroupState(limit=9, running=0), [InLine(1, "a")], [], [InLine(1, "a"), InLine(2, "b")])
    assert (turns.run, turns.wake) == (["a"], ["b"])


def test_runs_of_groups_are_claimed_on_the_dot():
    assert laned(Policy(concurrency=Concurrency(group="db", limit=1)))
    assert laned(Policy(max_running=3))
    assert not laned(Policy(timeout=Duration(1)))
