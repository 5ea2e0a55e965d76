"""Later results: a call was accepted, and its receiver tells by a callback how it ended (`completion: callback`).

A callback speaks of one try. It may come before we have recorded that the call was accepted, after its node was lost,
or after we gave that try up because no answer came: what was done is done. What can't be undone is an end that we
recorded of an accepted try, or of the run.
"""

from __future__ import annotations

import random as chance
from collections.abc import Sequence
from enum import Enum

from onthedot.model.policy import Policy
from onthedot.model.run import Attempt, ClaimedRun, Outcome
from onthedot.plan.outcome import Dead, Decision, Done, on_outcome

__all__ = ["Standing", "not_completed", "on_complete", "standing_of"]


class Standing(Enum):
    """What a callback for a try of a run means."""

    CURRENT = "current"
    """That try is the one that the run is at: it ends by it."""
    EARLIER = "earlier"
    """That try was given up without an answer, and the run is at a later one."""
    REPEAT = "repeat"
    """A callback has ended that try before."""
    OVER = "over"
    """That try ended otherwise."""


def standing_of(try_number: int, tries: int, attempts: Sequence[Attempt], *, ended: bool) -> Standing:
    """`tries`: those that the run has behind it; `ended`: all of them, it is over."""
    told = [attempt for attempt in attempts if attempt.try_number == try_number]
    if any(attempt.completion == "callback" for attempt in told):
        return Standing.REPEAT
    if ended:
        return Standing.OVER
    if try_number == tries + 1:
        return Standing.CURRENT
    never_accepted = bool(told) and all(attempt.completion is None for attempt in told)
    return Standing.EARLIER if never_accepted and try_number <= tries else Standing.OVER


def on_complete(
    run: ClaimedRun, outcome: Outcome, now: int, random: chance.Random, *, earlier: bool, pending: bool
) -> Decision | None:
    """None: nothing changes. `earlier`: it speaks of a try that was given up; `pending`: no later one has begun."""
    if outcome.ok:
        return Done(status="done", tries=run.tries if earlier else run.tries + 1, losses=run.losses)
    if not earlier:
        return on_outcome(run, outcome, now, random)
    if outcome.retryable or not pending:  # the later try decides
        return None
    return Dead(reason="not_retryable", tries=run.tries, losses=run.losses)


def not_completed(policy: Policy | None, *, accepted: bool) -> Outcome:
    """No callback came in time. `accepted`: it was certain that the receiver had taken it. No policy: its job is gone,
    and nobody knows any more how long that was."""
    if accepted:
        within = "in time" if policy is None else f"within {policy.completion_timeout}"
        error = f"accepted, but not completed {within}"
        return Outcome(kind="timeout", retryable=True, error=error)
    return Outcome(kind="unknown", error="the node was lost after the run was sent, and no callback was received")
