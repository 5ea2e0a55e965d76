"""The model of the policies by itself: what it says is what the contract says."""

from __future__ import annotations

from typing import Any

import pytest

from proof.checker.ledger import Entry
from proof.model.attempts import follows, sender_saw
from proof.model.catch_up import caught_up
from proof.model.rules import Rules, duration, rules_of
from proof.model.stats import totals_of
from proof.oracle.slots import slots_of

MINUTE, DAY = 60_000, 86_400_000


def rules(target: str = "webhook", **policy) -> Rules:
    return rules_of({"target": {"type": target}, "policy": policy})


class TestRules:
    @pytest.mark.parametrize(("given", "ms"), [(90, 90_000), ("1.5s", 1500), ("1h30m", 5_400_000), ("200ms", 200)])
    def test_durations(self, given, ms):
        assert duration(given) == ms

    def test_defaults_of_the_contract(self):
        found = rules()
        assert (found.attempts, found.backoff, found.factor, found.longest) == (3, 1000, 2, 300_000)
        assert (found.timeout, rules("function").timeout) == (3000, None)
        assert (found.overlap, found.catch_up, found.at_most_once, found.jitter) == ("allow", "latest", False, 0)


def test_a_count_begins_with_the_schedule_wherever_the_look_begins():
    schedule = {"every": "2s", "count": 3}
    assert slots_of(schedule, anchor=0, after=0, until=20_000) == [2000, 4000, 6000]
    assert slots_of(schedule, anchor=0, after=3999, until=20_000) == [4000, 6000]
    assert slots_of({"cron": "* * * * *", "count": 2}, anchor=0, after=60_000, until=600_000) == [120_000]


class TestAttempts:
    def test_answer_and_time_out(self):
        assert sender_saw(rules(), "ok", 10) == {"ok"}
        assert sender_saw(rules(), "refused", 10) == sender_saw(rules(), "cut", 10) == {"error"}
        assert sender_saw(rules(), "ok", 3001) == {"timeout"}
        assert sender_saw(rules(), "ok", 2990) == {"ok", "timeout"}
        assert sender_saw(rules("function"), "ok", 100_000) == {"ok"}

    def test_waits_grow_are_spread_and_bounded(self):
        policy = rules(retry={"attempts": 9, "backoff": "1s", "factor": 2, "max": "5s"})
        waits = [follows(policy, "error", retryable=True, tries=n, age=0) for n in (1, 2, 3, 4)]
        assert [(one.soonest, one.latest) for one in waits] == [(750, 1251), (1500, 2501), (3000, 5001), (5000, 5001)]

    def test_no_sooner_than_the_receiver_asked_for(self):
        found = follows(rules(), "error", retryable=True, tries=1, age=0, retry_after=4000)
        assert (found.soonest, found.latest) == (4000, 4000)
        assert follows(rules(), "error", retryable=True, tries=1, age=0, retry_after=9 * DAY).soonest == DAY

    @pytest.mark.parametrize(
        ("outcome", "retryable", "tries", "policy", "status", "reason"),
        [
            ("ok", False, 1, {}, "done", None),
            ("error", False, 1, {}, "failed", "not_retryable"),
            ("timeout", True, 3, {}, "failed", "attempts"),
            ("error", True, 1, {"delivery": "at_most_once"}, "failed", "at_most_once"),
            ("error", True, 1, {"retry": {"max_age": "1s"}}, "failed", "max_age"),
            ("interrupted", False, 0, {"delivery": "at_most_once"}, "failed", "unknown"),
            ("expired", False, 0, {}, "skipped", "late"),
        ],
    )
    def test_ends(self, outcome, retryable, tries, policy, status, reason):
        found = follows(rules(**policy), outcome, retryable=retryable, tries=tries, age=900)
        assert (found.again, found.status, found.reasons) == (False, status, (reason,))

    def test_chance_decides_near_max_age(self):
        found = follows(rules(retry={"max_age": "2s"}), "error", retryable=True, tries=1, age=1000)
        assert (found.again, found.may_end, found.reasons) == (True, True, ("max_age",))

    @pytest.mark.parametrize(("plan", "first", "last", "tries"), [("quick", 1, 120, 5), ("standard", 5, 50_400, 8)])
    def test_plans(self, plan, first, last, tries):
        planned = rules(retry={"plan": plan})
        assert planned.attempts == tries
        waits = [follows(planned, "error", retryable=True, tries=n, age=0) for n in (1, tries - 1)]
        assert [wait.soonest for wait in waits] == [first * 1000, last * 1000]
        assert [wait.latest for wait in waits] == [first * 1100 + 1, last * 1100 + 1]
        assert follows(planned, "error", retryable=True, tries=tries, age=0).reasons == ("attempts",)

    @pytest.mark.parametrize(
        ("left", "max_age", "again", "reasons"),
        [
            (2000, None, True, ()),
            (1000, None, True, ("next_slot",)),
            (700, None, False, ("next_slot",)),
            (1000, "1s", True, ("max_age", "next_slot")),
            (700, "1s", False, ("max_age", "next_slot")),
            (1000, "1ms", False, ("max_age",)),
        ],
    )
    def test_until_the_next_slot(self, left, max_age, again, reasons):
        found = follows(
            rules(retry={"until": "next_slot", "max_age": max_age}),
            "error",
            retryable=True,
            tries=1,
            age=0,
            left=left,
        )
        assert (found.again, found.reasons, found.may_end) == (again, reasons, bool(reasons))

    def test_lost_and_interrupted_come_again(self):
        for outcome in ("lost", "interrupted"):
            assert follows(rules(), outcome, retryable=False, tries=0, age=0).again


class TestCatchUp:
    slots = (10_000, 20_000, 30_000, 40_000)

    def caught(self, now: int = 45_000, **policy):
        found = caught_up(rules(**policy), self.slots, now, lambda slot: slot)
        return found.fire, found.given_up, found.reason

    def test_latest(self):
        assert self.caught() == ([40_000], [10_000, 20_000, 30_000], "coalesced")
        assert self.caught(now=40_001 + DAY) == ([], list(self.slots), "late")

    def test_skip(self):
        assert self.caught(catch_up="skip") == ([40_000], [10_000, 20_000, 30_000], "coalesced")
        assert self.caught(now=40_001 + MINUTE, catch_up="skip") == ([], list(self.slots), "late")

    def test_all(self):
        assert self.caught(catch_up="all") == (list(self.slots), [], None)
        assert self.caught(catch_up="all", catch_up_limit=2) == ([30_000, 40_000], [10_000, 20_000], "late")

    def test_what_expired_is_late(self):
        assert self.caught(expires_in="4s") == ([], list(self.slots), "late")
        assert self.caught(catch_up="all", expires_in="20s") == ([30_000, 40_000], [10_000, 20_000], "late")


def test_statistics_are_of_runs_that_were_done_or_failed():
    def entry(status: str, took: int | None) -> Entry:
        fields: dict[str, Any] = {
            "slot": 1,
            "until": None,
            "slots": None,
            "kind": "scheduled",
            "due_at": 1,
            "reason": None,
        }
        more: dict[str, Any] = {"token": 1, "tries": 1, "losses": 0, "finished_at": 2}
        return Entry(id="1-1", job=1, status=status, duration_ms=took, **fields, **more)

    found = totals_of([entry("done", 5), entry("failed", None), entry("failed", 7), entry("cancelled", 9)])
    assert (found.runs, found.failures, found.timed, found.duration_ms) == (3, 2, 2, 12)
