"""Short descriptions of jobs and runs, for tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onthedot.model.job import JobView
    from onthedot.model.run import RunView
    from onthedot.model.schedule import Schedule
    from onthedot.model.targets import Target

__all__ = ["meaning", "outcome_text", "schedule_text", "target_text"]


def schedule_text(schedule: Schedule) -> str:
    zone = "" if schedule.tz == "UTC" else f" {schedule.tz}"
    if schedule.cron is not None:
        return f"{schedule.cron}{zone}"
    if schedule.every is not None:
        return f"every {schedule.every}"
    if schedule.at is not None:
        return f"at {schedule.at}{zone}"
    if schedule.in_ is not None:
        return f"in {schedule.in_}"
    return schedule.kind


def meaning(job: JobView) -> str | None:
    """The schedule in words; None if that would only repeat it, or if `H` depends on a key that the job lacks."""
    from onthedot.timing import describe

    if job.schedule.cron is None or ("H" in job.schedule.cron and job.key is None):
        return None
    return describe(job.schedule, seed=job.key or "")


def target_text(target: Target) -> str:
    return target.summary().line


def outcome_text(run: RunView) -> str:
    if run.error:
        return run.error
    if run.reason:
        return run.reason if run.slots in (None, 1) else f"{run.reason} ({run.slots} slots)"
    detail = run.outcome or {}
    nested = detail.get("detail")
    found = nested if isinstance(nested, dict) else detail
    for name in ("status_code", "exit_code", "result"):
        if found.get(name) is not None:
            return f"{name.replace('_', ' ')} {found[name]}"
    return ""
