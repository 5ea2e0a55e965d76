"""What the first claim of a cursor does: which slots fire, which are given up, where the cursor goes.

Catch-up applies here, once, and never to retries or reclaims: those are not the cursor any more.
"""

from __future__ import annotations

import msgspec

from onthedot.model.duration import DAY, MINUTE
from onthedot.model.job import JobRecord
from onthedot.model.policy import Policy
from onthedot.model.run import run_id
from onthedot.plan.cursor import after_gap
from onthedot.plan.slots import EXACT, Skipped, Span, newest, remaining, span
from onthedot.plan.taken import NOTHING_TAKEN, Taken, free, pieces
from onthedot.plan.times import due_at, timetable_of
from onthedot.timing import Timetable

__all__ = ["ClaimPlan", "expired", "on_claim", "recorded_first"]

LATE = {"latest": DAY, "skip": MINUTE, "all": None}
"""How late a slot may still fire, by catch-up policy."""


class ClaimPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything from the cursor's slot to now is in exactly one of `fire`, `backlog`, `skipped`, or has a row already
    (P1)."""

    fire: int | None  # the slot this claim starts; None: none of them
    backlog: list[int]  # further missed slots, to become runs of their own in the backlog lane
    skipped: list[Skipped]
    successor: int | None  # the next cursor; None: the job has ended
    claimed_slot: int
    slots_used: int


def on_claim(
    job: JobRecord, slot: int, now: int, taken: Taken = NOTHING_TAKEN, thawed_at: int | None = None
) -> ClaimPlan:
    """The cursor of a recurring job has come to be claimed, on time, ahead of it, or late. taken: what comes after it
    and has a row already; there is something only if `claimed_slot` lies after the cursor. thawed_at: until when all
    was paused; what came before that is not fired any more."""
    if thawed_at is not None and slot < min(thawed_at, now):
        return _after_freeze(job, slot, min(thawed_at, now), taken)
    every = timetable_of(job.spec, job.anchor_at)
    times = free(every, taken)
    left = remaining(job.spec.schedule.count, job.slots_used)
    arrived = span(times, slot, max(slot, now), left)
    chosen = _chosen(job, times, arrived, now)
    used = job.slots_used + arrived.used
    ended = remaining(job.spec.schedule.count, used) == 0
    gap = _given_up(job.spec.policy, times, arrived, chosen)
    return ClaimPlan(
        fire=chosen[0] if chosen else None,
        backlog=chosen[1:],
        skipped=[] if gap is None else pieces(every, taken, gap),
        successor=None if ended else times.next_after(arrived.last),
        claimed_slot=newest(job.claimed_slot, arrived.last),
        slots_used=used,
    )


def _after_freeze(job: JobRecord, slot: int, thawed_at: int, taken: Taken) -> ClaimPlan:
    """As after the resume of a job: one range, and the cursor goes on behind it. If that is due already, it is claimed
    next."""
    change = after_gap(job, slot, thawed_at - 1, taken, reason="paused")
    return ClaimPlan(
        fire=None,
        backlog=[],
        skipped=list(change.skipped),
        successor=change.cursor_slot,
        claimed_slot=newest(change.claimed_slot, slot),
        slots_used=change.slots_used,
    )


def expired(policy: Policy, due: int, now: int) -> bool:
    """One-off, manual and backfill runs fire however late, unless `expires_in` passed before their first send."""
    return policy.expires_in is not None and now - due > policy.expires_in


def recorded_first(policy: Policy, *, again: bool) -> bool:
    """Whether `begin` must be committed before it is sent. At most once always; and the first send of what may expire:
    of a run whose node was lost it must be known whether it began, because then it is sent again, however late, and
    if it did not, it is late."""
    return policy.delivery == "at_most_once" or (policy.expires_in is not None and not again)


def _chosen(job: JobRecord, times: Timetable, arrived: Span, now: int) -> list[int]:
    """The slots to fire, oldest first: the newest that arrived, as many as the policy wants, none of them too late."""
    policy = job.spec.policy
    wanted = policy.catch_up_limit if policy.catch_up == "all" else 1
    chosen: list[int] = []
    slot: int | None = arrived.last
    while slot is not None and slot >= arrived.first and len(chosen) < wanted and not _too_late(job, slot, now):
        chosen.append(slot)
        slot = None if slot == arrived.first else max(times.latest_until(slot - 1) or arrived.first, arrived.first)
    return chosen[::-1]


def _too_late(job: JobRecord, slot: int, now: int) -> bool:
    policy = job.spec.policy
    late = now - due_at(slot, run_id(job.id, slot), policy.jitter)
    limit = LATE[policy.catch_up]
    return (limit is not None and late > limit) or (policy.expires_in is not None and late > policy.expires_in)


def _given_up(policy: Policy, times: Timetable, arrived: Span, chosen: list[int]) -> Skipped | None:
    """The slots before the first that fires, as one range."""
    if not chosen:
        return Skipped(first=arrived.first, last=arrived.last, slots=arrived.slots, reason="late")
    if chosen[0] == arrived.first:
        return None
    before = max(times.latest_until(chosen[0] - 1) or arrived.first, arrived.first)
    return Skipped(
        first=arrived.first,
        last=before,
        slots=_less(times, arrived, before, len(chosen)),
        reason="late" if policy.catch_up == "all" else "coalesced",
    )


def _less(times: Timetable, arrived: Span, before: int, chosen: int) -> int | None:
    if arrived.slots is not None:
        return arrived.slots - chosen
    rest = times.count_between(arrived.first, before, EXACT - 1)  # just over the limit with those that fire
    return None if rest is None else rest + 1
