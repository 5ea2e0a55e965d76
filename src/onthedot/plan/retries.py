"""How often a run is tried, how long it waits in between, and until when: by a formula or by a plan."""

from __future__ import annotations

import random as chance

from msgspec import UNSET

from onthedot.model.duration import HOUR, MINUTE, SECOND
from onthedot.model.job import JobSpec
from onthedot.model.policy import Retry as RetryPolicy
from onthedot.model.policy import RetryPlan
from onthedot.plan.times import timetable_of

__all__ = ["PLANS", "backoff", "most_tries", "retry_until", "wait_after"]

PLANS: dict[RetryPlan, tuple[int, ...]] = {
    "quick": (SECOND, 5 * SECOND, 30 * SECOND, 2 * MINUTE),
    "standard": (5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR),
}
"""The waits after the first try, the second and so on; after the last of them comes the last try."""

LATER = 1.1
"""A wait of a plan is up to a tenth longer, and never shorter: whoever reads a plan counts on its times."""


def most_tries(retry: RetryPolicy) -> int:
    if retry.plan:
        return len(PLANS[retry.plan]) + 1
    assert retry.attempts is not UNSET
    return retry.attempts


def wait_after(retry: RetryPolicy, tries: int, random: chance.Random) -> int:
    """How long to wait after the n-th try. The spread keeps a thousand runs that failed together from coming back
    together."""
    if retry.plan:
        waits = PLANS[retry.plan]
        return int(waits[min(tries, len(waits)) - 1] * random.uniform(1, LATER))
    return backoff(retry, tries, random)


def backoff(retry: RetryPolicy, tries: int, random: chance.Random) -> int:
    """backoff × factor^(n-1), spread by a quarter either way, never over `max`."""
    assert retry.backoff is not UNSET
    assert retry.factor is not UNSET
    assert retry.max is not UNSET
    wait = float(retry.backoff)
    for _ in range(tries - 1):
        if wait >= retry.max or retry.factor == 1:
            break
        wait *= retry.factor
    return int(min(wait * random.uniform(0.75, 1.25), retry.max))


def retry_until(spec: JobSpec, anchor_at: int, slot: int) -> int | None:
    """`until: next_slot`: the first slot after the run's own, in the schedule that its job has now. None: no limit.
    After the last slot of a `count` the time of the next one still ends it: a late call is worth no more there."""
    if spec.policy.retry.until != "next_slot" or spec.schedule.one_off:
        return None
    return timetable_of(spec, anchor_at).next_after(slot)
