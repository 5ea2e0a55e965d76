"""Jobs that follow others, where a world has chains: what follows them is drawn with the jobs of users."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from onthedot.model.duration import Duration
from onthedot.model.instant import format_instant
from onthedot.model.job import JobSpec
from onthedot.model.policy import Policy, Retry
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget

__all__ = ["FOLLOWERS", "a_chain", "followers"]

FOLLOWERS = ("after-any", "after-dead", "after-done")
SHARE = 0.7
FAR = 300 * 86_400_000


def followers(now: int) -> list[JobSpec]:
    """One that fires by itself too, one whose runs never overlap and fail at times, one that fires once, in a far
    future. The first follows the other two."""
    retry = Retry(attempts=2, backoff=Duration(500))
    return [
        _job("after-any", Schedule(every=Duration(7000)), "ok", retry=retry),
        _job("after-dead", Schedule(every=Duration(45_000)), "flaky", {"on_failure": ["after-any"]}, overlap="queue"),
        _job("after-done", Schedule(at=format_instant(now + FAR)), "flaky", {"on_finish": ["after-any"]}, retry=retry),
    ]


def _job(key: str, schedule: Schedule, mood: str, edges: dict[str, Any] | None = None, **policy: Any) -> JobSpec:
    target = WebhookTarget(url="http://receiver/1")
    spec = JobSpec(key=key, schedule=schedule, target=target, policy=Policy(**policy), params={"mood": mood})
    return msgspec.structs.replace(spec, **(edges or {}))


def a_chain(rng: random.Random, spec: JobSpec) -> JobSpec:
    """The job, followed by some of them, or by none."""
    if rng.random() >= SHARE:
        return spec
    edges: tuple[dict[str, list[str]], ...] = (
        {"on_success": ["after-done"]},
        {"on_failure": ["after-dead"]},
        {"on_finish": ["after-any"]},
        {"on_success": ["after-done"], "on_failure": ["after-dead"], "on_finish": ["after-any"]},
    )
    return msgspec.structs.replace(spec, **rng.choice(edges))
