"""Retry plans, and tries that end with the next slot."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.model.duration import Duration
from onthedot.model.policy import Retry as RetryPolicy
from onthedot.model.run import Outcome
from onthedot.model.schedule import Schedule
from onthedot.plan import Dead, RetryLater, most_tries, on_outcome, retry_until, wait_after
from tests.unit.plan.jobs import DAY, HOUR, MINUTE, NOW, SECOND, claimed, every, job

FAILED = Outcome(kind="error", retryable=True, error="500")
QUICK = [1 * SECOND, 5 * SECOND, 30 * SECOND, 2 * MINUTE]
STANDARD = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR]


@pytest.mark.parametrize(("plan", "waits"), [("quick", QUICK), ("standard", STANDARD)])
class TestPlans:
    def test_they_wait_as_the_contract_says_and_end(self, plan, waits):
        retry, now = RetryPolicy(plan=plan), NOW
        for tries, wait in enumerate(waits):
            again = on_outcome(claimed(retry=retry, tries=tries), FAILED, now, random.Random(tries))
            assert isinstance(again, RetryLater)
            assert wait <= again.ready_at - now <= wait * 1.1
            now = again.ready_at
        last = on_outcome(claimed(retry=retry, tries=len(waits)), FAILED, now, random.Random(0))
        assert last == Dead(reason="attempts", tries=len(waits) + 1, losses=0)
        assert most_tries(retry) == len(waits) + 1

    @given(tries=st.integers(1, 20), seed=st.integers(0, 10**6))
    def test_never_sooner_and_a_tenth_later_at_most(self, plan, waits, tries, seed):
        wait = waits[min(tries, len(waits)) - 1]
        assert wait <= wait_after(RetryPolicy(plan=plan), tries, random.Random(seed)) <= wait * 1.1

    def test_the_receiver_may_ask_for_more(self, plan, waits):
        asked = Outcome(kind="error", retryable=True, retry_after_ms=10 * waits[0])
        again = on_outcome(claimed(retry=RetryPolicy(plan=plan)), asked, NOW, random.Random(0))
        assert isinstance(again, RetryLater)
        assert again.ready_at == NOW + 10 * waits[0]

    def test_max_age_goes_with_it(self, plan, waits):
        retry = RetryPolicy(plan=plan, max_age=Duration(waits[0]))
        assert on_outcome(claimed(retry=retry), FAILED, NOW + 1, random.Random(0)) == Dead(
            reason="max_age", tries=1, losses=0
        )


class TestUntilTheNextSlot:
    def limit(self, schedule: Schedule, slot: int, anchor: int = NOW) -> int | None:
        return retry_until(job(schedule, retry=RetryPolicy(until="next_slot")).spec, anchor, slot)

    def test_it_is_the_first_slot_after_the_runs_own(self):
        assert self.limit(every(MINUTE), NOW + MINUTE) == NOW + 2 * MINUTE
        assert self.limit(Schedule(cron="0 * * * *"), NOW - NOW % HOUR) == NOW - NOW % HOUR + HOUR

    def test_a_run_that_was_asked_for_by_hand_lies_between_two(self):
        assert self.limit(every(MINUTE), NOW + MINUTE + 1) == NOW + 2 * MINUTE

    def test_when_the_schedule_was_given_counts(self):
        assert self.limit(every(MINUTE), NOW + MINUTE, anchor=NOW + 7) == NOW + MINUTE + 7

    def test_after_the_last_slot_nothing_limits_it(self):
        assert self.limit(every(MINUTE, end="2023-11-14T22:15:00Z"), NOW + MINUTE) is None

    def test_nor_without_being_asked_nor_where_there_is_no_next_slot(self):
        assert retry_until(job(every(MINUTE)).spec, NOW, NOW) is None
        assert self.limit(Schedule(at="2030-01-01T00:00:00Z"), NOW) is None

    @given(
        now=st.integers(0, DAY),
        left=st.integers(1, DAY),
        tries=st.integers(0, 8),
        asked=st.none() | st.integers(0, DAY),
        plan=st.sampled_from([None, "quick", "standard"]),
    )
    def test_no_try_begins_at_or_after_it(self, now, left, tries, asked, plan):
        run = msgspec.structs.replace(
            claimed(retry=RetryPolicy(plan=plan, until="next_slot"), tries=tries), retry_until=NOW + now + left
        )
        failed = Outcome(kind="error", retryable=True, retry_after_ms=asked)
        decision = on_outcome(run, failed, NOW + now, random.Random(tries))
        if isinstance(decision, RetryLater):
            assert NOW + now <= decision.ready_at < NOW + now + left
        else:
            assert isinstance(decision, Dead)
            assert decision.reason == ("attempts" if tries + 1 >= most_tries(run.spec.policy.retry) else "next_slot")
