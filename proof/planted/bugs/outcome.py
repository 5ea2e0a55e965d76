"""Every branch of `plan.outcome`, and the policies of a run that has begun."""

from __future__ import annotations

from proof.planted.focus import Focus
from proof.planted.plant import Bug, Code, Swap, code

__all__ = ["BUGS"]

_OUTCOME = "onthedot.plan.outcome"
_FAILED = f"{_OUTCOME}:_failed"
_ON = f"{_OUTCOME}:on_outcome"
_LOST = f"{_OUTCOME}:on_lost"
_KILLS = ("kill", "kill_at")
_CONTEXT = "onthedot.engine.running.run_context:RunContext"

BUGS = (
    code("retry: never ends", "attempts is ignored", _FAILED, "tries >= policy.retry.attempts", "False"),
    code(
        "retry: one try less",
        "the last try is never made",
        _FAILED,
        "tries >= policy.retry.attempts",
        "tries + 1 >= policy.retry.attempts",
    ),
    code(
        "retry: one try more",
        "one try more than the policy has",
        _FAILED,
        "tries >= policy.retry.attempts",
        "tries > policy.retry.attempts",
    ),
    code("retry: none", "every failure is final", _FAILED, "tries >= policy.retry.attempts", "True"),
    code(
        "retry: of what is not retryable", "a refusal is tried again", _FAILED, "if not outcome.retryable:", "if False:"
    ),
    code("retry: at once", "backoff is ignored", _FAILED, "wait = backoff(policy.retry, tries, random)", "wait = 0"),
    code(
        "retry: factor ignored",
        "each wait is as long as the first",
        f"{_OUTCOME}:backoff",
        "wait *= retry.factor",
        "break",
        focus=Focus(retry={"attempts": 4, "factor": 3.0}, mood="bad"),
    ),
    code(
        "retry: max ignored",
        "waits grow without bound",
        f"{_OUTCOME}:backoff",
        "min(wait * random.uniform(0.75, 1.25), retry.max)",
        "wait * random.uniform(0.75, 1.25)",
        focus=Focus(retry={"attempts": 4, "backoff": 1000, "factor": 3.0, "max": 1200}, mood="bad"),
    ),
    code(
        "retry: backoff grows with the wrong try",
        "the second wait is as long as the third",
        f"{_OUTCOME}:backoff",
        "range(tries - 1)",
        "range(tries)",
    ),
    code(
        "retry: Retry-After ignored",
        "the receiver's wish is not heard",
        _FAILED,
        "if outcome.retry_after_ms is not None:",
        "if False:",
        focus=Focus(retry={"attempts": 4, "backoff": 100}, mood="later"),
    ),
    code(
        "retry: max_age ignored",
        "tries go on after max_age",
        f"{_OUTCOME}:_too_old",
        "policy.retry.max_age is not None and",
        "False and",
        focus=Focus(retry={"attempts": 6, "max_age": 1500}, mood="bad"),
    ),
    code(
        "retry: max_age at once",
        "who has a max_age is never tried again",
        f"{_OUTCOME}:_too_old",
        "policy.retry.max_age is not None and then - since > policy.retry.max_age",
        "policy.retry.max_age is not None",
        focus=Focus(retry={"attempts": 6, "max_age": 4000}, mood="bad"),
    ),
    code(
        "retry: of at-most-once",
        "what was sent once and failed is sent again",
        _FAILED,
        'if policy.delivery == "at_most_once":',
        "if False:",
    ),
    code(
        "ok: recorded as failed",
        "a good answer is taken for an error",
        _ON,
        'if outcome.kind == "ok":',
        'if outcome.kind == "never":',
    ),
    code(
        "error: recorded as done",
        "an error is taken for a good answer",
        _ON,
        'if outcome.kind == "ok":',
        'if outcome.kind in ("ok", "error"):',
    ),
    code(
        "timeout: recorded as done",
        "a time-out is taken for a good answer",
        _ON,
        'if outcome.kind == "ok":',
        'if outcome.kind in ("ok", "timeout"):',
        focus=Focus(policy={"timeout": 800}, mood="slow"),
    ),
    code(
        "cancelled: recorded as done",
        "a stopped run is recorded as done",
        _ON,
        'return Done(status="cancelled"',
        'return Done(status="done"',
        focus=Focus(mood="slow", verbs=("cancel",)),
    ),
    code(
        "cancelled: tried again",
        "a cancelled run goes back to pending",
        _ON,
        'return Done(status="cancelled", tries=run.tries + begun, losses=run.losses, reason=reason)',
        "return on_interrupted(run, now)",
        focus=Focus(mood="slow", verbs=("cancel",)),
    ),
    code(
        "expired: tried again",
        "an expired run goes back to pending",
        _ON,
        'return Done(status="skipped", reason="late", tries=run.tries, losses=run.losses)',
        "return on_interrupted(run, now)",
        tests=("tests/unit/plan/test_outcome.py",),
        unseen="it expires again at its next claim",
    ),
    code(
        "lost: counts a try",
        "a node's death takes one of the run's tries",
        _LOST,
        "return RetryLater(ready_at=now, tries=run.tries, losses=losses)",
        "return RetryLater(ready_at=now, tries=run.tries + 1, losses=losses)",
        faults=_KILLS,
    ),
    code(
        "lost: at-most-once again",
        "what may have been sent is sent again",
        _LOST,
        "if run.begun:",
        "if False:",
        faults=_KILLS,
        focus=Focus(policy={"delivery": "at_most_once"}, mood="slow"),
    ),
    code(
        "lost: at-most-once given up unsent",
        "what was held and not begun is given up",
        _LOST,
        "if run.begun:",
        "if True:",
        faults=_KILLS,
        focus=Focus(policy={"delivery": "at_most_once"}),
    ),
    code(
        "lost: held ahead counts",
        "a loss before the instant counts against the run",
        _LOST,
        "run.losses + may_have_begun",
        "run.losses + 1",
        faults=_KILLS,
        focus=Focus(policy={"overlap": "allow"}),
    ),
    code(
        "lost: never counts",
        "a run that takes its nodes down is given out for ever",
        _LOST,
        "run.losses + may_have_begun",
        "run.losses",
        tests=("tests/unit/plan/test_outcome.py",),
        unseen="three nodes would have to die with one run",
    ),
    Bug(
        name="lost: poison at once",
        what="the first loss makes a dead letter",
        edits=(Swap(f"{_OUTCOME}:POISON", 1),),
        faults=_KILLS,
    ),
    code(
        "interrupted: counts a try",
        "an orderly stop takes one of the run's tries",
        f"{_OUTCOME}:on_interrupted",
        "return RetryLater(ready_at=now, tries=run.tries, losses=run.losses)",
        "return RetryLater(ready_at=now, tries=run.tries + 1, losses=run.losses)",
        faults=("stop",),
        focus=Focus(mood="slow"),
    ),
    code(
        "interrupted: at-most-once again",
        "what was under way at a stop is sent again",
        f"{_OUTCOME}:on_interrupted",
        'if policy.delivery == "at_most_once":',
        "if False:",
        tests=("tests/unit/plan/test_outcome.py",),
        unseen="calls end within the grace of a stop",
    ),
    code(
        "unknown: tried again",
        "what nobody knows the end of is sent again",
        _LOST,
        'return Dead(reason="unknown", tries=run.tries + 1, losses=run.losses + 1)',
        "return RetryLater(ready_at=now, tries=run.tries, losses=run.losses)",
        faults=_KILLS,
        focus=Focus(policy={"delivery": "at_most_once"}, mood="slow"),
    ),
    code(
        "dead: wrong reason",
        "a refusal is recorded as out of attempts",
        _FAILED,
        'reason="not_retryable"',
        'reason="attempts"',
    ),
    code(
        "timeout: ignored",
        "a slow call is waited for until the default",
        f"{_CONTEXT}.timeout_of",
        "if spec.policy.timeout is not None:",
        "if False:",
        focus=Focus(policy={"timeout": 800}, mood="slow"),
    ),
    code(
        "timeout: none",
        "no call is ever given up",
        f"{_CONTEXT}.timeout_of",
        "return self.default_timeout(spec.target)",
        "return None",
        focus=Focus(mood="slow"),
    ),
    code(
        "timeout: a tenth",
        "calls are given up far too soon",
        f"{_CONTEXT}.timeout_of",
        "return self.default_timeout(spec.target)",
        "return (self.default_timeout(spec.target) or 1e9) / 10",
    ),
    Bug(
        name="delivery: at-most-once ignored",
        what="at-most-once runs are sent without asking the store",
        edits=(
            Code(
                "onthedot.engine.claiming.dispatcher:Dispatcher._launch",
                'policy.delivery == "at_most_once"',
                "False",
            ),
        ),
        faults=_KILLS,
    ),
)
