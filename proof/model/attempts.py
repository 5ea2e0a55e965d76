"""How one attempt must have ended, by the receiver's own record, and what must follow from it."""

from __future__ import annotations

import msgspec

from proof.model.rules import DAY, Rules

__all__ = ["COUNTED", "Follows", "follows", "sender_saw"]

ON_ITS_WAY = 65
"""ms from what a node calls the start until the receiver has the call: a wait for a connection, and the way."""

COUNTED = ("ok", "error", "timeout", "refused", "unknown")
"""Outcomes that are a try, whatever else happened."""

SPREAD = 0.25


class Follows(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a run after an attempt. again: it is tried once more, no sooner and no later than so many ms
    after the end of this one. status and reason: of a run that is over; several reasons where chance decides."""

    again: bool = False
    may_end: bool = False
    soonest: int = 0
    latest: int = 0
    status: str | None = None
    reasons: tuple[str | None, ...] = ()


def sender_saw(rules: Rules, answer: str, took: int) -> set[str]:
    """What the sender may call it, if only the receiver decided: one thing, but where answer and time-out race."""
    kind = "ok" if answer == "ok" else "error"
    if rules.timeout is None or took < rules.timeout - ON_ITS_WAY:
        return {kind}
    return {"timeout"} if took > rules.timeout else {kind, "timeout"}


def follows(
    rules: Rules,
    outcome: str,
    *,
    retryable: bool,
    tries: int,
    age: int,
    retry_after: int | None = None,
    unsure: int = 0,
    left: int | None = None,
) -> Follows:
    """`tries`: those before it and itself. `age`: ms from when it was due, or first claimed, to the end of it. `left`:
    from there to the next slot, where that ends it. `unsure`: ms by which the sender may be wrong about what a date
    that the receiver asked for is from there."""
    match outcome:
        case "ok":
            return Follows(status="done", reasons=(None,), may_end=True)
        case "cancelled":
            return Follows(status="cancelled", reasons=(None, "cancelled", "replaced"), may_end=True)
        case "unknown":
            return Follows(status="failed", reasons=("unknown",), may_end=True)
        case "expired":
            return Follows(status="skipped", reasons=("late",), may_end=True)
        case "interrupted" | "lost" if not rules.at_most_once:
            return Follows(again=True)
        case "interrupted":
            return Follows(status="failed", reasons=("unknown",), may_end=True)
        case "lost":
            return Follows(again=True)
    if rules.at_most_once:
        return Follows(status="failed", reasons=("at_most_once",), may_end=True)
    if not retryable:
        return Follows(status="failed", reasons=("not_retryable",), may_end=True)
    if tries >= rules.attempts:
        return Follows(status="failed", reasons=("attempts",), may_end=True)
    soonest, latest = _waits(rules, tries, retry_after, unsure)
    too_old = _reaches(soonest, latest, None if rules.max_age is None else rules.max_age - age + 1)
    too_late = _reaches(soonest, latest, left)
    if not too_old and not too_late:
        return Follows(again=True, soonest=soonest, latest=latest)
    reasons = ("max_age",) if too_old == "surely" or not too_late else ("next_slot",)
    return Follows(
        again="surely" not in (too_old, too_late),
        may_end=True,
        soonest=soonest,
        latest=latest,
        status="failed",
        reasons=("max_age", "next_slot") if too_old == "perhaps" and too_late else reasons,
    )


def _reaches(soonest: int, latest: int, limit: int | None) -> str | None:
    """Whether a wait that chance chooses between these ends at or after the limit."""
    if limit is None or latest < limit:
        return None
    return "surely" if soonest >= limit else "perhaps"


def _waits(rules: Rules, tries: int, retry_after: int | None, unsure: int) -> tuple[int, int]:
    """backoff × factor^(n-1), a quarter more or less, never over `max`; or what a plan says, and up to a tenth more.
    And no sooner than the receiver asked for."""
    asked = min(retry_after or 0, DAY)
    if rules.waits:
        planned = rules.waits[tries - 1]
        return max(planned, asked - unsure), max(planned * 11 // 10 + 1, asked + unsure)
    middle = rules.backoff * rules.factor ** (tries - 1)
    soonest = int(min(middle * (1 - SPREAD), rules.longest))
    latest = int(min(middle * (1 + SPREAD), rules.longest)) + 1
    return max(soonest, asked - unsure), max(latest, asked + unsure)
