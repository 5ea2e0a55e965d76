"""Numbers over time, as the API shows them. All times RFC 3339."""

from __future__ import annotations

from typing import Literal

import msgspec

from onthedot.model.run import RunStatus

__all__ = ["STEPS", "RunPoint", "RunSeries", "StatsPoint", "StatsSeries", "Step"]

Step = Literal["minute", "hour", "day"]
STEPS: dict[Step, int] = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
"""How long each is, in ms. Hours and days are those of UTC."""


class StatsPoint(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that ended in one minute, hour or day. `firings`: those of which an attempt was made. `skipped`: slots.
    Percentiles are of lateness; null if nothing fired."""

    at: str
    firings: int
    done: int
    failed: int
    cancelled: int
    skipped: int
    lateness_p50_ms: int | None
    lateness_p99_ms: int | None
    duration_avg_ms: float | None
    duration_max_ms: int | None


class StatsSeries(msgspec.Struct, frozen=True, kw_only=True):
    """`counted_until`: what ended later is not counted yet. `since` and `until` are whole steps."""

    step: Step
    since: str
    until: str
    counted_until: str | None
    items: list[StatsPoint]


class RunPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One ended run of a job."""

    run_id: str
    scheduled_for: str
    finished_at: str | None
    status: RunStatus
    lateness_ms: int | None
    duration_ms: int | None


class RunSeries(msgspec.Struct, frozen=True, kw_only=True):
    """The last runs of a job that have ended, oldest first."""

    job_id: int
    items: list[RunPoint]
