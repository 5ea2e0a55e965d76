"""What a change of jobs does to their firings. All times RFC 3339."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from onthedot.model.job import JobSpec
from onthedot.model.struct import Strict

__all__ = ["MOST_JOBS", "ChangePlan", "MovedFiring", "PlanRequest", "PlannedChange", "PlannedJob", "PlannedMinute"]

MOST_JOBS = 1000
PlannedChange = Literal["new", "changed", "unchanged", "removed"]


class PlanRequest(Strict, frozen=True, kw_only=True):
    """Either one job, by `id` or `key`, with its new `spec` or a merge `patch`; or `jobs`, at most 1,000, which are new
    if there is none with their key, and `removed`: keys of jobs to delete. `days`: how far to look ahead."""

    days: Annotated[int, msgspec.Meta(ge=1, le=366)] = 30
    id: int | None = None
    key: str | None = None
    spec: JobSpec | None = None
    patch: dict[str, Any] | None = None
    jobs: Annotated[list[JobSpec], msgspec.Meta(max_length=MOST_JOBS)] | None = None
    removed: Annotated[list[str], msgspec.Meta(max_length=MOST_JOBS)] | None = None


class MovedFiring(msgspec.Struct, frozen=True, kw_only=True):
    before: str
    after: str


class PlannedJob(msgspec.Struct, frozen=True, kw_only=True):
    """`before` and `after`: firings in the whole time. `added`, `moved` and `removed` are of the time up to
    `compared_until`, and `first_…` the first five of each. A removed firing and an added one with no other between them
    are one that moved."""

    job_id: int | None
    key: str | None
    name: str | None
    change: PlannedChange
    before: int
    after: int
    added: int = 0
    moved: int = 0
    removed: int = 0
    compared_until: str
    first_added: list[str] = msgspec.field(default_factory=list)
    first_moved: list[MovedFiring] = msgspec.field(default_factory=list)
    first_removed: list[str] = msgspec.field(default_factory=list)


class PlannedMinute(msgspec.Struct, frozen=True, kw_only=True):
    """Starts of all jobs in a minute, before the change and after it."""

    at: str
    before: int
    after: int


class ChangePlan(msgspec.Struct, frozen=True, kw_only=True):
    """`busiest`: the five busiest minutes of the next 24 hours after the change. `complete` false: there was too much
    to compute. Then jobs are missing here, or the forecast of the busiest minutes does not cover all jobs."""

    since: str
    until: str
    complete: bool
    jobs: list[PlannedJob]
    busiest: list[PlannedMinute]
