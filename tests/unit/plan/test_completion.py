"""What a callback does to its run, and what it means that none came."""

from __future__ import annotations

import random
from typing import Any

import pytest

from onthedot.model.duration import Duration
from onthedot.model.policy import Policy
from onthedot.model.run import Attempt, Outcome
from onthedot.plan import (
    Accepted,
    Dead,
    Done,
    Lost,
    RetryLater,
    Standing,
    not_completed,
    on_complete,
    on_lost,
    on_outcome,
    standing_of,
)
from tests.unit.plan.jobs import NOW, claimed

OK = Outcome(kind="ok")
FAILED = Outcome(kind="error", retryable=True, error="boom")
FINAL = Outcome(kind="error", error="never")
CALLBACK: dict[str, Any] = {"completion": "callback", "completion_timeout": Duration(60_000)}


def attempt(of: int | None, completion: str | None = None) -> Attempt:
    return Attempt(
        attempt=1,
        node="n",
        started_at=1,
        finished_at=2,
        outcome="error",
        try_number=of,
        completion=completion,  # type: ignore[arg-type]
    )


def test_a_call_that_went_well_is_accepted():
    assert on_outcome(claimed(tries=1, losses=1, **CALLBACK), OK, NOW, random.Random(1)) == Accepted(
        within_ms=60_000, tries=1, losses=1
    )


def test_one_that_did_not_is_tried_again():
    assert isinstance(on_outcome(claimed(**CALLBACK), FAILED, NOW, random.Random(1)), RetryLater)


def test_interrupted_what_is_sent_at_most_once_may_still_be_completed():
    interrupted = Outcome(kind="interrupted")
    run = claimed(delivery="at_most_once", **CALLBACK)
    assert on_outcome(run, interrupted, NOW, random.Random(1)) == Accepted(
        within_ms=60_000, tries=0, losses=0, certain=False
    )
    assert isinstance(on_outcome(claimed(**CALLBACK), interrupted, NOW, random.Random(1)), RetryLater)


def test_lost_what_is_sent_at_most_once_may_still_be_completed():
    lost: dict[str, Any] = {"due_at": NOW, "tries": 0, "losses": 0, "at_most_once": True, "callback_ms": 60_000}
    assert on_lost(Lost(begun=True, **lost), NOW) == Accepted(within_ms=60_000, tries=0, losses=0, certain=False)
    assert on_lost(Lost(begun=False, **lost), NOW) == RetryLater(ready_at=NOW, tries=0, losses=0)


@pytest.mark.parametrize(
    ("of", "tries", "attempts", "standing"),
    [
        (1, 0, [], Standing.CURRENT),
        (2, 1, [attempt(1)], Standing.CURRENT),
        (1, 1, [attempt(1)], Standing.EARLIER),
        (1, 2, [attempt(1), attempt(2)], Standing.EARLIER),
        (1, 1, [attempt(1, "callback")], Standing.REPEAT),
        (1, 1, [attempt(1, "timeout")], Standing.OVER),
        (1, 1, [attempt(1), attempt(1, "timeout")], Standing.OVER),
        (2, 2, [attempt(1, "timeout"), attempt(2)], Standing.EARLIER),
        (1, 25, [attempt(n) for n in range(6, 26)], Standing.OVER),
        (2, 0, [], Standing.OVER),
    ],
)
def test_where_a_callback_stands(of, tries, attempts, standing):
    assert standing_of(of, tries, attempts, ended=False) is standing


def test_of_a_run_that_is_over_only_a_repeat_is_taken():
    assert standing_of(1, 1, [attempt(1, "callback")], ended=True) is Standing.REPEAT
    assert standing_of(1, 1, [attempt(1)], ended=True) is Standing.OVER
    assert standing_of(2, 1, [attempt(1)], ended=True) is Standing.OVER


@pytest.mark.parametrize(
    ("outcome", "earlier", "pending", "decision"),
    [
        (OK, False, False, Done(status="done", tries=2, losses=0)),
        (OK, True, True, Done(status="done", tries=1, losses=0)),
        (OK, True, False, Done(status="done", tries=1, losses=0)),
        (FINAL, False, False, Dead(reason="not_retryable", tries=2, losses=0)),
        (FINAL, True, True, Dead(reason="not_retryable", tries=1, losses=0)),
        (FINAL, True, False, None),
        (FAILED, True, True, None),
        (FAILED, True, False, None),
    ],
)
def test_what_it_does(outcome, earlier, pending, decision):
    run = claimed(tries=1, **CALLBACK)
    assert on_complete(run, outcome, NOW, random.Random(1), earlier=earlier, pending=pending) == decision


def test_a_failure_is_tried_again_as_any_other():
    again = on_complete(claimed(**CALLBACK), FAILED, NOW, random.Random(1), earlier=False, pending=False)
    assert isinstance(again, RetryLater)
    assert again.tries == 1


def test_that_none_came_is_a_time_out_or_nobody_knows():
    policy = Policy(completion="callback", completion_timeout=Duration(90_000))
    assert not_completed(policy, accepted=True) == Outcome(
        kind="timeout", retryable=True, error="accepted, but not completed within 1m30s"
    )
    assert not_completed(policy, accepted=False).kind == "unknown"
