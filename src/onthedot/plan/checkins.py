"""Reports of jobs that run elsewhere: what one means for a run that waits for it, and what it means that none came.

The rules are those of healthchecks.io. A report of success counts for every run that waits. One that comes early does
not count for a slot of a cron expression or a date: that slot wants its own. With `every`, the time counts from the
last success: the job need not keep to our slots, only to its interval. Who said "start" has the grace time from then
on, once more.
"""

from __future__ import annotations

import msgspec

from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.run import Outcome
from onthedot.plan.outcome import Dead, Decision, Done

__all__ = ["PingTimes", "on_report", "on_silence"]


class PingTimes(msgspec.Struct, frozen=True, kw_only=True):
    """When a job last reported that it has ended well, and that it has started and not yet ended."""

    ok_at: int | None = None
    started_at: int | None = None


def on_report(outcome: Outcome, tries: int, losses: int) -> Decision:
    """Nothing here can be tried again: what ran, ran elsewhere."""
    if outcome.ok:
        return Done(status="done", tries=tries + 1, losses=losses)
    return Dead(reason="not_retryable", tries=tries + 1, losses=losses)


def on_silence(spec: JobSpec, slot: int, due_at: int, said: PingTimes, now: int) -> Outcome | int:
    """The time of a run that waits for its report is up: how it ended, or until when it goes on waiting."""
    grace = Duration(spec.target.report_within or 0)
    if said.ok_at is not None and said.ok_at >= slot:  # it came before the run was open
        return Outcome(kind="ok")
    until = due_at + grace
    if said.started_at is not None:
        until = max(until, said.started_at + grace)
    if said.ok_at is not None and spec.schedule.every is not None:
        until = max(until, said.ok_at + spec.schedule.every + grace)
    if until > now:
        return until
    what = "no check-in" if said.started_at is None or said.started_at < slot else "started, but no success reported"
    return Outcome(kind="timeout", error=f"missed: {what} within {grace}", detail={"missed": True})
