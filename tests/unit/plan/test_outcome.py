"""Done, again, or a dead letter; and what a lost or interrupted attempt means."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.model.duration import Duration
from onthedot.model.policy import Retry as RetryPolicy
from onthedot.model.run import Outcome
from onthedot.plan import Dead, Done, Lost, RetryLater, backoff, on_interrupted, on_lost, on_outcome
from tests.unit.plan.jobs import DAY, MINUTE, NOW, SECOND, claimed

FAILED = Outcome(kind="error", retryable=True, error="boom")
REFUSED = Outcome(kind="refused", retryable=False, error="no")


def decide(run, outcome, now=NOW + 10, seed=1):
    return on_outcome(run, outcome, now, random.Random(seed))


class TestOutcome:
    def test_ok(self):
        assert decide(claimed(), Outcome(kind="ok")) == Done(status="done", tries=1, losses=0)

    def test_a_failure_is_tried_again_after_the_backoff(self):
        again = decide(claimed(), FAILED)
        assert isinstance(again, RetryLater)
        assert NOW + 10 + 750 <= again.ready_at <= NOW + 10 + 1250
        assert (again.tries, again.losses) == (1, 0)

    def test_the_last_try_is_a_dead_letter(self):
        assert decide(claimed(tries=2), FAILED) == Dead(reason="attempts", tries=3, losses=0)

    def test_losses_do_not_count_as_tries(self):
        again = decide(claimed(tries=1, losses=2), FAILED)
        assert isinstance(again, RetryLater)
        assert (again.tries, again.losses) == (2, 2)

    def test_what_can_not_succeed_is_not_tried_again(self):
        assert decide(claimed(), REFUSED) == Dead(reason="not_retryable", tries=1, losses=0)

    def test_at_most_once_is_never_sent_again(self):
        assert decide(claimed(delivery="at_most_once"), FAILED) == Dead(reason="at_most_once", tries=1, losses=0)

    def test_retry_after_is_honoured(self):
        again = decide(claimed(), Outcome(kind="error", retryable=True, retry_after_ms=90_000))
        assert again == RetryLater(ready_at=NOW + 10 + 90_000, tries=1, losses=0)

    def test_but_not_for_more_than_a_day(self):
        again = decide(claimed(), Outcome(kind="error", retryable=True, retry_after_ms=400 * DAY))
        assert again == RetryLater(ready_at=NOW + 10 + DAY, tries=1, losses=0)

    def test_a_short_retry_after_does_not_shorten_the_backoff(self):
        again = decide(claimed(), Outcome(kind="error", retryable=True, retry_after_ms=1))
        assert isinstance(again, RetryLater)
        assert again.ready_at >= NOW + 10 + 750

    def test_no_retry_beyond_max_age(self):
        policy = RetryPolicy(attempts=100, max_age=Duration(MINUTE))
        assert isinstance(decide(claimed(retry=policy), FAILED, NOW + 50 * SECOND), RetryLater)
        assert decide(claimed(retry=policy), FAILED, NOW + MINUTE) == Dead(reason="max_age", tries=1, losses=0)

    def test_cancelled(self):
        assert isinstance(decide(claimed(), Outcome(kind="cancelled")), Done)

    def test_cancelled_before_any_send_counts_no_try(self):
        """Seen in the simulation: the ledger counted a try that no receiver ever got."""
        held = on_outcome(claimed(), Outcome(kind="cancelled"), NOW, random.Random(1), begun=False)
        assert held == Done(status="cancelled", tries=0, losses=0)
        assert decide(claimed(), Outcome(kind="cancelled")) == Done(status="cancelled", tries=1, losses=0)

    def test_expired_is_skipped_as_late(self):
        assert decide(claimed(), Outcome(kind="expired")) == Done(status="skipped", reason="late", tries=0, losses=0)

    def test_unknown_is_a_dead_letter_if_it_may_be_done_once_at_most(self):
        once = claimed(delivery="at_most_once")
        assert decide(once, Outcome(kind="unknown")) == Dead(reason="unknown", tries=1, losses=0)
        assert decide(claimed(), Outcome(kind="unknown")) == RetryLater(ready_at=NOW + 10, tries=0, losses=0)


class TestBackoff:
    @pytest.mark.parametrize(("tries", "least", "most"), [(1, 750, 1250), (2, 1500, 2500), (3, 3000, 5000)])
    def test_doubles(self, tries, least, most):
        waits = [backoff(RetryPolicy(), tries, random.Random(seed)) for seed in range(50)]
        assert least <= min(waits) < max(waits) <= most

    def test_ends_at_its_maximum(self):
        waits = {backoff(RetryPolicy(), tries, random.Random(tries)) for tries in range(12, 1000, 50)}
        assert max(waits) <= 300_000
        assert min(waits) >= 225_000

    @given(
        tries=st.integers(1, 1000),
        base=st.integers(0, 10**9),
        factor=st.floats(1, 100),
        most=st.integers(0, 10**9),
        seed=st.integers(0, 10),
    )
    def test_is_never_negative_and_never_over_the_maximum(self, tries, base, factor, most, seed):
        policy = RetryPolicy(backoff=Duration(base), factor=factor, max=Duration(most))
        assert 0 <= backoff(policy, tries, random.Random(seed)) <= most


class TestLost:
    def lost(self, **more):
        facts = {"due_at": NOW, "tries": 0, "losses": 0, "at_most_once": False, "begun": False}
        return on_lost(Lost(**{**facts, **more}), NOW + 10)

    def test_is_retried_at_once(self):
        assert self.lost(tries=1) == RetryLater(ready_at=NOW + 10, tries=1, losses=1)

    def test_the_third_time_it_is_poison(self):
        assert self.lost(losses=1) == RetryLater(ready_at=NOW + 10, tries=0, losses=2)
        assert self.lost(losses=2) == Dead(reason="poison", tries=0, losses=3)

    def test_tries_do_not_limit_losses(self):
        assert isinstance(self.lost(tries=999), RetryLater)

    def test_what_was_held_ahead_had_not_begun(self):
        assert self.lost(losses=2, due_at=NOW + 11) == RetryLater(ready_at=NOW + 10, tries=0, losses=2)

    def test_what_would_have_been_recorded_first_and_was_not_had_not_begun(self):
        """However long its instant has passed: not a loss, and so it may still expire."""
        assert self.lost(recorded_first=True, losses=2) == RetryLater(ready_at=NOW + 10, tries=0, losses=2)
        assert self.lost(recorded_first=True, begun=True) == RetryLater(ready_at=NOW + 10, tries=0, losses=1)

    @given(
        due_in=st.integers(-DAY, DAY),
        tries=st.integers(0, 10),
        losses=st.integers(0, 5),
        at_most_once=st.booleans(),
        begun=st.booleans(),
        recorded_first=st.booleans(),
    )
    def test_a_loss_is_counted_only_of_what_may_have_begun(
        self, due_in, tries, losses, at_most_once, begun, recorded_first
    ):
        became = self.lost(
            due_at=NOW + 10 + due_in,
            tries=tries,
            losses=losses,
            at_most_once=at_most_once,
            begun=begun,
            recorded_first=recorded_first,
        )
        may_have_begun = begun if at_most_once or recorded_first else due_in <= 0
        assert became.losses == losses + may_have_begun
        assert became.tries == tries + (at_most_once and begun)
        if not may_have_begun and losses < 3:
            assert became == RetryLater(ready_at=NOW + 10, tries=tries, losses=losses)
        if at_most_once and begun:
            assert became == Dead(reason="unknown", tries=tries + 1, losses=losses + 1)

    def test_at_most_once_after_begin_is_unknown(self):
        assert self.lost(at_most_once=True, begun=True) == Dead(reason="unknown", tries=1, losses=1)

    def test_at_most_once_before_begin_is_pending_again(self):
        assert self.lost(at_most_once=True) == RetryLater(ready_at=NOW + 10, tries=0, losses=0)


class TestInterrupted:
    def test_no_try_is_counted(self):
        assert on_interrupted(claimed(tries=2), NOW) == RetryLater(ready_at=NOW, tries=2, losses=0)
        assert decide(claimed(tries=2), Outcome(kind="interrupted")) == RetryLater(ready_at=NOW + 10, tries=2, losses=0)

    def test_at_most_once_stays_sent(self):
        assert on_interrupted(claimed(delivery="at_most_once"), NOW) == Dead(reason="unknown", tries=1, losses=0)
