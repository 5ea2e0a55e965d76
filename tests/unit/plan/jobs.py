"""Jobs to decide about, in a line each. Every test of plan starts at NOW."""

from __future__ import annotations

from typing import Any

from onthedot.model.duration import Duration
from onthedot.model.job import JobRecord, JobSpec
from onthedot.model.policy import Policy, Retry
from onthedot.model.run import ClaimedRun, run_id
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget

NOW = 1_700_000_000_000
SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000


def every(ms: int, **more: Any) -> Schedule:
    return Schedule(every=Duration(ms), **more)


def spec(schedule: Schedule, *, key: str | None = None, paused: bool = False, url: str = "http://a/", **policy: Any):
    return JobSpec(key=key, schedule=schedule, target=WebhookTarget(url=url), policy=Policy(**policy), paused=paused)


def job(schedule: Schedule, *, state: str = "active", paused: bool | None = None, **more: Any) -> JobRecord:
    """A job whose schedule was given at NOW."""
    facts = {name: more.pop(name) for name in ("claimed_slot", "slots_used", "paused_at", "reason") if name in more}
    facts.setdefault("claimed_slot", None)
    facts.setdefault("slots_used", 0)
    written = spec(schedule, paused=state == "paused" if paused is None else paused, **more)
    return JobRecord(
        id=7,
        tenant=1,
        spec=written,
        version=1,
        state=state,  # type: ignore[arg-type]
        anchor_at=NOW,
        created_at=NOW,
        updated_at=NOW,
        **facts,
    )


def claimed(
    *, retry: Retry | None = None, tries: int = 0, losses: int = 0, due: int = NOW, **policy: Any
) -> ClaimedRun:
    return ClaimedRun(
        id=run_id(7, due),
        tenant=1,
        job_id=7,
        version=1,
        spec=spec(every(1000), retry=retry or Retry(), **policy),
        kind="scheduled",
        slot=due,
        due_at=due,
        token=tries + losses + 1,
        tries=tries,
        losses=losses,
        first_claimed_at=due,
        recurring=True,
    )
