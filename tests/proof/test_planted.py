"""The checker is checked: bugs of quite different kinds are planted, and seen. (`make planted` plants all of them.)"""

from __future__ import annotations

import inspect

import pytest

from onthedot.engine.lease import Lease
from onthedot.store.queries import Queries
from proof.planted.bugs import BUGS
from proof.planted.command import search
from proof.planted.plant import planted

QUICK = ("record before send", "successor not inserted", "forgotten reclaim", "retry that never comes")


def test_there_are_enough_of_them():
    assert len(BUGS) >= 12
    assert len({bug.name for bug in BUGS}) == len(BUGS)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_bug_still_fits_where_it_is_planted(bug):
    """What it replaces is there and is called in the same way, or it would crash nodes and prove nothing."""
    for where, name, instead in bug.swaps:
        assert _ways_to_call(instead) == _ways_to_call(getattr(where, name)), name
    statements = Queries("sqlite", "now_ms()")
    for name, part, _ in bug.statements:
        assert part in statements[name]


def _ways_to_call(function):
    """Whether it is a coroutine, and how many arguments it must and may have."""
    given = inspect.signature(function).parameters.values()
    return inspect.iscoroutinefunction(function), [(one.kind, one.default is one.empty) for one in given]


@pytest.mark.parametrize("name", QUICK)
def test_planted_bug_turns_the_simulation_red(name):
    bug = next(bug for bug in BUGS if bug.name == name)
    caught = search(bug, seeds=6, minutes=2)
    assert caught.seed is not None, f"only {caught.kinds} were seen"
    assert set(caught.kinds) & set(bug.shows)


def test_a_bug_is_taken_out_again():
    before = Lease.may_start
    bug = next(bug for bug in BUGS if bug.name == "no lease")
    with planted(bug):
        assert Lease.may_start is not before
    assert Lease.may_start is before
