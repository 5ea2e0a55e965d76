"""What an ended attempt does to its run: done, again later, or a dead letter."""

from __future__ import annotations

import random as chance
from typing import Literal

import msgspec

from onthedot.model.duration import DAY
from onthedot.model.policy import Policy
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.plan.retries import most_tries, wait_after

__all__ = [
    "Accepted",
    "Dead",
    "Decision",
    "Done",
    "Lost",
    "RetryLater",
    "on_interrupted",
    "on_lost",
    "on_outcome",
    "overdue",
    "stopped_by",
]

POISON = 3
"""A run whose node died this often while it may have been the cause is not given to another one."""

OVERDUE_MS = 30_000
"""How long after its time was up an open run waits for a node that reaches its work, and stops it."""

LONGEST_WAIT = DAY  # a Retry-After beyond this is a mistake of the receiver, or malice


class Done(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Over, and nobody needs to look at it."""

    status: Literal["done", "cancelled", "skipped"]
    tries: int
    losses: int
    reason: str | None = None


class RetryLater(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Pending again, not to be claimed before `ready_at`."""

    ready_at: int
    tries: int
    losses: int


class Accepted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The receiver will tell how it ended, within so many ms of when this is recorded; the run is open until then. Not
    `certain`: it may not have arrived at all, and the time counts from when it was sent."""

    within_ms: int
    tries: int
    losses: int
    certain: bool = True


class Dead(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Failed for good: a dead letter, kept until somebody redrives it."""

    reason: Literal["attempts", "not_retryable", "max_age", "next_slot", "at_most_once", "poison", "unknown"]
    tries: int
    losses: int


Decision = Done | RetryLater | Dead | Accepted

AT_FIRST_TRY = Done(status="done", tries=1, losses=0)
"""What becomes of nearly every run: one value for all of them."""


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a run whose node died."""

    due_at: int
    tries: int
    losses: int
    at_most_once: bool
    begun: bool  # recorded by `begin`
    recorded_first: bool = False  # this send was to be recorded before it left: without the record it did not
    callback_ms: int | None = None  # its receiver may still tell how it ended, so long after it was sent


def on_outcome(run: ClaimedRun, outcome: Outcome, now: int, random: chance.Random, *, begun: bool = True) -> Decision:
    """A target answered, failed, timed out, or was told to stop; `begun` False: it was stopped before any send."""
    if outcome.kind == "ok":
        spec, tries, losses = run.spec, run.tries + 1, run.losses
        if spec.target.reports and spec.target.report_within is not None:  # by the slot: it is not late because we were
            within = max(0, run.due_at + spec.target.report_within - now)
            return Accepted(within_ms=within, tries=run.tries, losses=losses)
        if spec.policy.completion != "answer":
            return Accepted(within_ms=spec.policy.completion_timeout, tries=run.tries, losses=losses)
        return Done(status="done", tries=tries, losses=losses) if tries > 1 or losses else AT_FIRST_TRY
    if outcome.kind == "interrupted":
        return on_interrupted(run, now)
    if outcome.kind == "cancelled":
        reason = "replaced" if "replaced_by" in outcome.detail else None
        return Done(status="cancelled", tries=run.tries + begun, losses=run.losses, reason=reason)
    if outcome.kind == "expired":
        return Done(status="skipped", reason="late", tries=run.tries, losses=run.losses)
    return _failed(run, outcome, run.tries + 1, now, random)


def stopped_by(newer: str | None) -> Outcome:
    """A run was told to stop: by a user, or because a newer one takes its lane (`overlap: replace`)."""
    if newer is None:
        return Outcome(kind="cancelled", error="cancelled by a user")
    return Outcome(kind="cancelled", error=f"replaced by run {newer}", detail={"replaced_by": newer})


def _failed(run: ClaimedRun, outcome: Outcome, tries: int, now: int, random: chance.Random) -> Decision:
    policy = run.spec.policy
    if outcome.kind == "unknown" and policy.delivery == "at_most_once":
        return Dead(reason="unknown", tries=tries, losses=run.losses)
    if outcome.kind == "unknown":  # nothing was found of it, and nothing could be started: no try is counted
        return RetryLater(ready_at=now, tries=run.tries, losses=run.losses)
    if policy.delivery == "at_most_once":
        return Dead(reason="at_most_once", tries=tries, losses=run.losses)
    if not outcome.retryable:
        return Dead(reason="not_retryable", tries=tries, losses=run.losses)
    if tries >= most_tries(policy.retry):
        return Dead(reason="attempts", tries=tries, losses=run.losses)
    wait = wait_after(policy.retry, tries, random)
    if outcome.retry_after_ms is not None:
        wait = max(wait, min(outcome.retry_after_ms, LONGEST_WAIT))
    if _too_old(policy, run, now + wait):
        return Dead(reason="max_age", tries=tries, losses=run.losses)
    if run.retry_until is not None and now + wait >= run.retry_until:
        return Dead(reason="next_slot", tries=tries, losses=run.losses)
    return RetryLater(ready_at=now + wait, tries=tries, losses=run.losses)


def on_lost(run: Lost, now: int) -> Decision:
    """Its node died with it. At once again, but not for ever, and never what may have been sent at most once: that is
    over, or waits for its callback.

    What has not begun has not begun: that loss says nothing about the run and is not counted, and the run may still
    expire. It is certain of a run that would have been recorded first and was not, and of one whose instant has not
    come yet. Any other may have been sent.
    """
    if run.at_most_once:
        if run.begun and run.callback_ms is not None:
            return Accepted(within_ms=run.callback_ms, tries=run.tries, losses=run.losses, certain=False)
        if run.begun:
            return Dead(reason="unknown", tries=run.tries + 1, losses=run.losses + 1)
        return RetryLater(ready_at=now, tries=run.tries, losses=run.losses)
    may_have_begun = run.begun if run.recorded_first else run.due_at <= now
    losses = run.losses + may_have_begun
    if losses >= POISON:
        return Dead(reason="poison", tries=run.tries, losses=losses)
    return RetryLater(ready_at=now, tries=run.tries, losses=losses)


def overdue(policy: Policy) -> Outcome:
    """An open run's time is up, and nobody could reach what it started: whether that goes on, nobody knows."""
    error = "timed out, and no node could reach its work"
    if policy.delivery == "at_most_once":
        return Outcome(kind="unknown", error=error)
    return Outcome(kind="timeout", retryable=True, error=error)


def on_interrupted(run: ClaimedRun, now: int) -> Decision:
    """Its node stops and could not wait for it: no try is counted. What was sent at most once stays sent, and may still
    be completed where that is done by a callback."""
    policy = run.spec.policy
    if policy.delivery == "at_most_once" and policy.completion == "callback":
        return Accepted(within_ms=policy.completion_timeout, tries=run.tries, losses=run.losses, certain=False)
    if policy.delivery == "at_most_once":
        return Dead(reason="unknown", tries=run.tries + 1, losses=run.losses)
    return RetryLater(ready_at=now, tries=run.tries, losses=run.losses)


def _too_old(policy: Policy, run: ClaimedRun, then: int) -> bool:
    since = max(run.due_at, run.first_claimed_at)
    return policy.retry.max_age is not None and then - since > policy.retry.max_age
