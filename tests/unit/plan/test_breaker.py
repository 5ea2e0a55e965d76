"""The circuit breaker: what opens and closes it, and that it lets one probe out at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from onthedot.plan.breaker import FAILURES, PROBE_EVERY, Breaker


def opened(at: float = 100.0) -> Breaker:
    breaker = Breaker()
    assert [breaker.failed(at, at) for _ in range(FAILURES)] == [False] * (FAILURES - 1) + [True]
    return breaker


def test_failures_in_a_row_open_it():
    breaker = opened()
    assert (breaker.state, breaker.since, breaker.failures) == ("open", 100.0, FAILURES)
    assert not breaker.admits(100.0)


def test_one_success_in_between_and_it_counts_anew():
    breaker = Breaker()
    for _ in range(3):
        for _ in range(FAILURES - 1):
            assert not breaker.failed(1.0, 1.0)
        assert not breaker.succeeded(1.0)
    assert breaker.admits(1.0)


def test_one_probe_at_a_time_and_one_in_ten_seconds():
    breaker = opened()
    assert not breaker.admits(100.0 + PROBE_EVERY - 0.001)
    assert breaker.admits(100.0 + PROBE_EVERY)
    assert breaker.sent(100.0 + PROBE_EVERY) == 1
    assert (breaker.state, breaker.probing) == ("half_open", True)
    assert not breaker.admits(1e9), "it is under way"
    assert not breaker.failed(113.0, 110.0, probe=1)
    assert (breaker.state, breaker.failures) == ("open", FAILURES + 1)
    assert not breaker.admits(100.0 + 2 * PROBE_EVERY - 0.001)
    assert breaker.admits(100.0 + 2 * PROBE_EVERY)


def test_a_success_closes_it():
    breaker = opened()
    breaker.sent(110.0)
    assert breaker.succeeded(111.0)
    assert (breaker.state, breaker.failures) == ("closed", 0)
    assert breaker.admits(111.0)
    assert not breaker.sent(111.0), "no probe is needed"


def test_so_does_that_of_a_call_that_was_under_way():
    breaker = opened()
    assert breaker.succeeded(101.0)
    assert breaker.state == "closed"


def test_calls_from_before_it_closed_do_not_open_it_again():
    breaker = opened()
    breaker.sent(110.0)
    breaker.succeeded(111.0)
    for _ in range(250):
        assert not breaker.failed(112.0, 99.0)
    assert breaker.state == "closed"
    assert breaker.failures == 0


def test_a_probe_of_which_nothing_is_known_makes_room_for_the_next():
    breaker = opened()
    breaker.sent(110.0)
    breaker.undecided(111.0, probe=1)
    assert breaker.state == "open"
    assert breaker.admits(111.0)


def test_what_is_no_probe_and_undecided_changes_nothing():
    breaker = opened()
    breaker.sent(110.0)
    breaker.undecided(111.0)
    assert breaker.state == "half_open"


@given(st.lists(st.booleans(), max_size=60))
def test_closed_exactly_while_there_were_not_so_many_failures_in_a_row(outcomes: list[bool]):
    """Without a probe, of calls that all were begun at the start."""
    breaker, in_a_row, is_open = Breaker(), 0, False
    for ok in outcomes:
        if ok:
            breaker.succeeded(1.0)
            in_a_row, is_open = 0, False
        else:
            in_a_row += breaker.failed(1.0, 1.0) or True
            is_open = is_open or in_a_row >= FAILURES
        assert (breaker.since is not None) == is_open


class Calls(RuleBasedStateMachine):
    """Whatever calls do, and in whatever order they end."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = Breaker()
        self.now = 0.0
        self.open: list[tuple[float, int]] = []  # when it began, and its number if it is a probe
        self.probes: list[float] = []

    @rule(seconds=st.floats(0.0, 12.0))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.breaker.admits(self.now))
    @rule()
    def a_call_goes_out(self) -> None:
        was_open = self.breaker.since is not None
        probe = self.breaker.sent(self.now)
        assert bool(probe) == was_open
        if probe:
            self.probes.append(self.now)
        self.open.append((self.now, probe))

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 1000), how=st.sampled_from(["ok", "failed", "failed", "failed", "undecided"]))
    def a_call_ends(self, which: int, how: str) -> None:
        began, probe = self.open.pop(which % len(self.open))
        if how == "ok":
            self.breaker.succeeded(self.now)
            assert self.breaker.state == "closed"
        elif how == "failed":
            self.breaker.failed(self.now, began, probe=probe)
        else:
            was = self.breaker.probing
            self.breaker.undecided(self.now, probe=probe)
            if was and not self.breaker.probing:
                self.probes.clear()

    @invariant()
    def a_probe_is_under_way_while_half_open_and_never_two(self) -> None:
        probes = [probe for _, probe in self.open if probe]
        if self.breaker.state == "half_open":
            assert probes.count(max(probes)) == 1

    @invariant()
    def probes_are_ten_seconds_apart(self) -> None:
        if self.breaker.since is None:
            self.probes.clear()
        assert all(late - early >= PROBE_EVERY for early, late in zip(self.probes, self.probes[1:], strict=False))

    @invariant()
    def open_only_after_failures_and_never_for_ever(self) -> None:
        assert (self.breaker.since is None) == (self.breaker.failures < FAILURES)
        if not self.breaker.probing:
            assert self.breaker.admits(self.now + PROBE_EVERY), "sooner or later a probe goes out"


TestCalls = Calls.TestCase


def test_when_the_next_probe_is_due():
    assert Breaker().next_probe is None
    breaker = opened(5.0)
    assert breaker.next_probe == 5.0 + PROBE_EVERY
    probe, found = breaker.sent(20.0), [breaker.next_probe]
    breaker.failed(21.0, 20.0, probe=probe)
    found.append(breaker.next_probe)
    breaker.succeeded(22.0)
    assert [*found, breaker.next_probe] == [None, 20.0 + PROBE_EVERY, None], "under way, failed, closed"
