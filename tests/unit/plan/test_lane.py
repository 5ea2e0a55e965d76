"""Overlap: each policy against each situation."""

from __future__ import annotations

import pytest

from onthedot.plan import on_lane


def move(overlap, kind="scheduled", *, first=True, held=True, waited_for=False):
    return on_lane(overlap, kind, first=first, held=held, waited_for=waited_for)


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
@pytest.mark.parametrize("kind", ["scheduled", "manual", "backfill", "redrive"])
def test_a_free_lane_is_taken(overlap, kind):
    assert move(overlap, kind, held=False) == "run"


def test_skip_gives_the_slot_up():
    assert move("skip") == "skip"


def test_in_a_queue_one_waits():
    assert move("queue") == "wait"
    assert move("queue", waited_for=True) == "skip"


def test_replace_stops_the_old_one():
    assert move("replace") == "replace"
    assert move("replace", waited_for=True) == "replace"


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
@pytest.mark.parametrize("kind", ["manual", "backfill", "redrive"])
def test_what_a_person_asked_for_waits_and_is_not_dropped(overlap, kind):
    assert move(overlap, kind, waited_for=True) == "wait"


@pytest.mark.parametrize("overlap", ["skip", "queue", "replace"])
def test_a_retry_waits_for_its_turn(overlap):
    assert move(overlap, first=False) == "wait"


def test_the_older_never_takes_the_lane_from_the_newer():
    for waited_for in (False, True):
        assert on_lane("replace", "scheduled", first=True, held=True, waited_for=waited_for, newer=True) == "skip"
    assert on_lane("replace", "manual", first=True, held=True, waited_for=False, newer=True) == "wait"
    assert on_lane("replace", "scheduled", first=False, held=True, waited_for=False, newer=True) == "wait", "a retry"
    assert on_lane("replace", "scheduled", first=True, held=False, waited_for=False, newer=True) == "run"
