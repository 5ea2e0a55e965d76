"""The lateness objective of a job: which share of its runs starts on time, and how much of the rest is used up."""

from __future__ import annotations

from typing import Annotated

import msgspec

from onthedot.model.duration import DAY, Duration
from onthedot.model.struct import Strict

__all__ = ["WINDOW_DAYS", "Objective", "ObjectiveReport", "report_of", "window_starts"]

WINDOW_DAYS = 28


class Objective(Strict, frozen=True, kw_only=True):
    """So many percent of the runs start within `late` of when they were due, over the last 28 days."""

    late: Duration
    percent: Annotated[int, msgspec.Meta(ge=1, le=99)] | Annotated[float, msgspec.Meta(gt=0, lt=100)]


class ObjectiveReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a job stands. `percent`: of the runs that started in time, null without runs; firings given up count as late.
    `budget_left`: percent of the late runs that are allowed, negative if there were more. `burn`: how fast the
    budget was used in the last 24 hours; at 1 it lasts exactly the window."""

    days: int
    runs: int
    on_time: int
    percent: float | None
    met: bool
    budget_left: float | None
    burn: float | None


def report_of(objective: Objective, *, runs: int, on_time: int, day_runs: int, day_on_time: int) -> ObjectiveReport:
    """`day_…`: of the last 24 hours."""
    allowed = 1 - objective.percent / 100
    share = on_time / runs if runs else None
    return ObjectiveReport(
        days=WINDOW_DAYS,
        runs=runs,
        on_time=on_time,
        percent=None if share is None else round(100 * share, 3),
        met=share is None or share >= objective.percent / 100,
        budget_left=None if share is None else round(100 * (1 - (1 - share) / allowed), 1),
        burn=round((1 - day_on_time / day_runs) / allowed, 2) if day_runs else None,
    )


def window_starts(now: int) -> int:
    """The first ms of the oldest day of the window (UTC)."""
    return now - now % DAY - (WINDOW_DAYS - 1) * DAY
