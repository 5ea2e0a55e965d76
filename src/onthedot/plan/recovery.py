"""When an incident is over: by what is known of its job since."""

from __future__ import annotations

import msgspec

from onthedot.model.alerts import AlertCondition

__all__ = ["JobSince", "Over", "is_over"]


class JobSince(msgspec.Struct, frozen=True, kw_only=True):
    """A job with an open incident. `last_…`: of its last run that ended (recurring jobs). `once_done_at`: when a run of
    a one-off job last went well. `lives`: the run at which it was found has not ended. `last_at`: when it was found."""

    condition: AlertCondition
    last_at: int
    limit_ms: int | None
    state: str | None  # of the job; None: it is gone
    one_off: bool
    last_status: str | None
    last_finished_at: int | None
    last_lateness_ms: int | None
    last_duration_ms: int | None
    once_done_at: int | None
    has_dead: bool
    lives: bool
    still_late: bool


class Over(msgspec.Struct, frozen=True):
    """`at`: since when. Not `told`: it is over because nobody wants the job to run."""

    at: int
    told: bool = True


def is_over(job: JobSince, now: int) -> Over | None:
    if job.state is None:
        return Over(now, told=False)
    condition = job.condition
    if condition in ("late", "missed", "unroutable") and job.state == "paused":
        return Over(now, told=False)
    if condition == "dead":
        return None if job.has_dead else Over(now)
    if condition == "unroutable":
        return None
    if job.one_off:
        return _once(job, now)
    ended = job.last_finished_at
    if ended is None or ended <= job.last_at or not _is_well(job):
        return None
    return Over(ended)


def _is_well(job: JobSince) -> bool:
    """Whether the last run of a recurring job shows that it is over."""
    if job.condition == "late":
        late = job.last_lateness_ms
        return not job.still_late and late is not None and late <= (job.limit_ms or 0)
    if job.condition == "too_long":
        took = job.last_duration_ms
        return not job.lives and took is not None and took <= (job.limit_ms or 0)
    return job.last_status == "done"


def _once(job: JobSince, now: int) -> Over | None:
    if job.condition == "late":
        return None if job.still_late else Over(now)
    if job.condition == "too_long":
        return None if job.lives else Over(now)
    if job.once_done_at is not None and job.once_done_at > job.last_at:
        return Over(job.once_done_at)
    if job.condition in ("failed", "in_a_row") and not job.has_dead and not job.lives:
        return Over(now, told=False)  # whoever discarded the dead letter knows
    return None
