"""Jobs of every kind, drawn by chance."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from msgspec import UNSET

from onthedot.model.duration import Duration
from onthedot.model.instant import format_instant
from onthedot.model.job import JobSpec, JobView
from onthedot.model.policy import Concurrency, Overlap, Policy, Retry
from onthedot.model.schedule import Schedule
from onthedot.model.targets import CommandTarget, FunctionTarget, Target, WebhookTarget
from proof.sim.outside import COMMAND

__all__ = ["a_one_off", "a_recurring", "a_target", "another_policy", "another_schedule", "in_group"]

CRONS = (
    "* * * * * *",
    "*/2 * * * * *",
    "*/5 * * * * *",
    "1/3 * * * * *",
    "7,23,24,41 * * * * *",
    "0-10 * * * * *",
    "*/30 * * * * *",
    "* * * * *",
    "30 0 2 * * *",
    "0,30 */2 * * * *",
    "0 0 1 1 *",
)
ZONES = ("UTC", "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
OVERLAPS: tuple[Overlap, ...] = ("allow", "allow", "allow", "skip", "queue", "replace")
EVERY = (1000, 1500, 2000, 2500, 3000, 7000, 45_000)


def a_one_off(rng: random.Random, now: int) -> JobSpec:
    return _called_back(_a_one_off(rng, now))


def _called_back(spec: JobSpec) -> JobSpec:
    """One receiver in nine tells later, by a callback, and the work of one goes on without its node. Nothing is drawn
    for it: the other jobs stay what they were."""
    target = spec.target
    if isinstance(target, WebhookTarget) and target.url.endswith("/8"):
        return msgspec.structs.replace(spec, target=CommandTarget(command=COMMAND))
    if not isinstance(target, WebhookTarget) or not target.url.endswith("/9"):
        return spec
    within = 2000 * (1 + len(str(spec.params.get("mood"))) % 3)
    policy = msgspec.structs.replace(spec.policy, completion="callback", completion_timeout=Duration(within))
    return msgspec.structs.replace(spec, policy=policy)


def _a_one_off(rng: random.Random, now: int) -> JobSpec:
    delay = rng.choice((rng.randint(50, 3000), rng.randint(1, 40) * 1000))
    schedule = Schedule(in_=Duration(delay)) if rng.random() < 0.5 else Schedule(at=format_instant(now + delay))
    expires = Duration(rng.randint(1000, 8000)) if rng.random() < 0.1 else None
    return JobSpec(
        schedule=schedule,
        target=a_target(rng),
        policy=Policy(
            timeout=_timeout(rng),
            retry=_retry(rng),
            delivery="at_most_once" if rng.random() < 0.25 else "at_least_once",
            jitter=Duration(rng.choice((0, 0, 0, 700))),
            expires_in=expires,
            overlap=rng.choice(("allow", "allow", "allow", "queue")),
        ),
        params={"mood": rng.choice(("ok", "ok", "ok", "ok", "flaky", "bad", "fatal", "slow", "later", "dated"))},
    )


def a_recurring(rng: random.Random) -> JobSpec:
    overlap: Overlap = rng.choice(OVERLAPS)
    moods = (
        ("ok", "ok", "ok", "flaky", "bad", "slow", "later", "dated", "gone", "last")
        if overlap == "allow"
        else ("ok", "slow", "slow", "flaky", "gone")
    )
    return _called_back(
        JobSpec(
            schedule=_schedule(rng),
            target=a_target(rng),
            policy=_until_next_slot(rng, _policy(rng, overlap)),
            params={"mood": rng.choice(moods)},
            paused=rng.random() < 0.05,
        )
    )


def another_schedule(rng: random.Random) -> Schedule:
    """Never with a `count`: where a changed schedule begins depends on what was claimed ahead."""
    return _schedule(rng, bounded=False)


def another_policy(rng: random.Random, job: JobView) -> Policy:
    """Not another overlap: who held the lane under which of them is more than a history can tell. Nor another way to
    be completed: whether a call was accepted under it or not would be as hard to tell."""
    policy, said = _policy(rng, job.policy.overlap), job.policy
    concurrency = said.concurrency
    if concurrency is not UNSET:  # its group stays, its limit does not
        concurrency = Concurrency(group=concurrency.group, limit=1 + job.version % 3)
    return msgspec.structs.replace(
        policy,
        completion=said.completion,
        completion_timeout=said.completion_timeout,
        concurrency=concurrency,
        max_running=said.max_running,
    )


def in_group(spec: JobSpec, mark: int) -> JobSpec:
    """Two groups for half of the jobs, a limit of its own for a quarter. Nothing is drawn for it. Not with an overlap
    policy: who holds a lane while it waits for its group is more than a history can tell."""
    if mark % 4 == 0 or spec.policy.overlap != "allow":
        return spec
    if mark % 4 == 3:
        return _with_policy(spec, max_running=1 + mark % 2)
    return _with_policy(spec, concurrency=Concurrency(group=f"g{mark % 2}", limit=1 + mark // 4 % 3))


def _with_policy(spec: JobSpec, **more: Any) -> JobSpec:
    return msgspec.structs.replace(spec, policy=msgspec.structs.replace(spec.policy, **more))


def a_target(rng: random.Random) -> Target:
    if rng.random() < 0.2:
        return FunctionTarget(function=f"work:task_{rng.randint(1, 3)}")
    return WebhookTarget(url=f"http://receiver/{rng.randint(1, 9)}")


def _schedule(rng: random.Random, *, bounded: bool = True) -> Schedule:
    count = rng.randint(3, 40) if bounded and rng.random() < 0.1 else None
    if rng.random() < 0.5:
        return Schedule(every=Duration(rng.choice(EVERY)), count=count)
    return Schedule(cron=rng.choice(CRONS), tz=rng.choice(ZONES), count=count)


def _policy(rng: random.Random, overlap: Overlap) -> Policy:
    return Policy(
        timeout=_timeout(rng),
        retry=_retry(rng),
        overlap=overlap,
        catch_up=rng.choice(("latest", "latest", "skip", "all")),
        catch_up_limit=rng.choice((3, 10, 100)),
        delivery="at_most_once" if rng.random() < 0.2 else "at_least_once",
        jitter=Duration(rng.choice((0, 0, 0, 300))),
        expires_in=Duration(rng.randint(500, 8000)) if rng.random() < 0.12 else None,
    )


def _timeout(rng: random.Random) -> Duration | None:
    return Duration(rng.choice((800, 2000))) if rng.random() < 0.15 else None


def _until_next_slot(rng: random.Random, policy: Policy) -> Policy:
    if rng.random() >= 0.15:
        return policy
    return msgspec.structs.replace(policy, retry=msgspec.structs.replace(policy.retry, until="next_slot"))


def _retry(rng: random.Random) -> Retry:
    if rng.random() < 0.1:
        max_age = Duration(rng.choice((4000, 60_000))) if rng.random() < 0.3 else None
        return Retry(plan=rng.choice(("quick", "quick", "standard")), max_age=max_age)
    return Retry(
        attempts=rng.randint(1, 4),
        backoff=Duration(rng.choice((100, 500, 1000))),
        factor=rng.choice((2.0, 2.0, 1.0, 3.0)),
        max=Duration(rng.choice((4000, 700))),
        max_age=Duration(rng.choice((1500, 4000))) if rng.random() < 0.15 else None,
    )
