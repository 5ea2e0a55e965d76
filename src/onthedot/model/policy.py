"""How hard to try, what to do when runs overlap, are late, or are lost."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from onthedot.model.duration import HOUR, Duration
from onthedot.model.struct import Strict

__all__ = [
    "BY_FORMULA",
    "CatchUp",
    "CompletedBy",
    "Concurrency",
    "Delivery",
    "Overlap",
    "Policy",
    "Retry",
    "RetryPlan",
]

Overlap = Literal["allow", "skip", "queue", "replace"]
CatchUp = Literal["latest", "skip", "all"]
Delivery = Literal["at_least_once", "at_most_once"]
CompletedBy = Literal["answer", "callback"]
RetryPlan = Literal["quick", "standard"]
GROUP_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z"
ACCEPTED_GROUPS = "1 to 100 letters, digits, dots, underscores and hyphens, the first one a letter or digit"
AtOnce = Annotated[int, msgspec.Meta(ge=1, le=10_000)]


def _by_default(value: Any) -> dict[str, Any]:
    """For the schema: left out, a field has this value, unless there is a plan."""
    return {"default": value}


BY_FORMULA: dict[str, Any] = {"attempts": 3, "backoff": Duration(1000), "factor": 2.0, "max": Duration(300_000)}
"""When to try again without a plan. A plan says it all, and excludes them."""


class Retry(Strict, frozen=True, kw_only=True):
    """`attempts` counts sends begun, the first one included. Losses (the node died) are counted apart. `plan` gives
    fixed waits instead of `attempts`, `backoff`, `factor` and `max`. `until`: no try at or after the next slot."""

    attempts: Annotated[int, msgspec.Meta(ge=1, le=1000, extra_json_schema=_by_default(3))] | UnsetType = UNSET
    backoff: Annotated[Duration, msgspec.Meta(extra_json_schema=_by_default("1s"))] | UnsetType = UNSET
    factor: Annotated[float, msgspec.Meta(ge=1, le=100, extra_json_schema=_by_default(2.0))] | UnsetType = UNSET
    max: Annotated[Duration, msgspec.Meta(extra_json_schema=_by_default("5m"))] | UnsetType = UNSET
    max_age: Duration | None = None
    plan: RetryPlan | UnsetType | None = UNSET
    until: Literal["next_slot"] | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        """Without a plan the numbers that were left out are their defaults; with one they stay out, so that what is
        read back can be sent back. What says nothing is not written down: older nodes do not know it."""
        for name in ("plan", "until"):
            if getattr(self, name) is None:
                msgspec.structs.force_setattr(self, name, UNSET)
        if self.plan is UNSET:
            for name, value in BY_FORMULA.items():
                if getattr(self, name) is UNSET:
                    msgspec.structs.force_setattr(self, name, value)


class Concurrency(Strict, frozen=True, kw_only=True):
    """At most `limit` runs of all jobs that name this group are running at once, over all nodes."""

    group: Annotated[str, msgspec.Meta(pattern=GROUP_PATTERN, description=ACCEPTED_GROUPS)]
    limit: AtOnce


class Policy(Strict, frozen=True, kw_only=True):
    timeout: Duration | None = None  # None: no limit; the service gives webhooks TIMEOUT_SECONDS
    retry: Retry = Retry()
    overlap: Overlap = "allow"
    catch_up: CatchUp = "latest"
    catch_up_limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 100
    delivery: Delivery = "at_least_once"
    jitter: Duration = Duration(0)
    expires_in: Duration | None = None
    completion: CompletedBy = "answer"  # callback: a 2xx means accepted, and the receiver tells later how it ended
    completion_timeout: Duration = Duration(HOUR)  # how long after that
    concurrency: Concurrency | UnsetType = UNSET  # left out, it is not written down: older nodes do not know it
    max_running: AtOnce | UnsetType = UNSET  # the same for the runs of this job alone
