"""due_at, ready_at, shares of the free slots, levels."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onthedot.model.instant import NEVER
from onthedot.model.level import LEVEL, level_of
from onthedot.model.policy import Policy
from onthedot.plan import due_at, laned, on_time_share, ready_at, shares
from tests.unit.plan.jobs import NOW, every, spec


def test_without_jitter_due_is_the_slot():
    assert due_at(NOW, f"7-{NOW}", 0) == NOW


@given(slot=st.integers(0, 2**53), jitter=st.integers(1, 10**9))
def test_jitter_is_never_early_and_always_the_same(slot, jitter):
    due = due_at(slot, f"7-{slot}", jitter)
    assert slot <= due < slot + jitter
    assert due == due_at(slot, f"7-{slot}", jitter)


def test_jitter_spreads_jobs():
    assert len({due_at(NOW, f"{job}-{NOW}", 60_000) for job in range(1000)}) > 950


def test_a_run_is_ready_ahead_of_its_instant():
    assert ready_at(NOW, lane=False) == NOW - 2000
    assert ready_at(NOW, lane=False, lookahead=500) == NOW - 500


def test_a_laned_run_is_not():
    assert ready_at(NOW, lane=True) == NOW


def test_a_parked_run_never_is():
    assert ready_at(NOW, lane=False, parked=True) == NEVER


def test_all_but_allow_is_laned():
    assert not laned(Policy())
    assert all(laned(Policy(overlap=overlap)) for overlap in ("skip", "queue", "replace"))


@given(limit=st.integers(0, 5000), wanted=st.lists(st.integers(0, 5000), min_size=1, max_size=5))
def test_shares_give_what_there_is_and_no_more(limit, wanted):
    given_out = shares(limit, wanted)
    assert sum(given_out) == min(limit, sum(wanted))
    assert all(got <= want for got, want in zip(given_out, wanted, strict=True))


@given(limit=st.integers(3, 5000), wanted=st.lists(st.integers(1, 5000), min_size=1, max_size=3))
def test_nobody_starves(limit, wanted):
    fair = limit // len(wanted)
    assert all(got >= min(want, fair) for got, want in zip(shares(limit, wanted), wanted, strict=True))


def test_half_is_kept_for_what_is_on_time():
    assert [on_time_share(n) for n in (1, 2, 3, 1000)] == [1, 1, 2, 500]


def test_every_job_is_understood_by_this_release():
    assert level_of(spec(every(1000))) <= LEVEL
