"""Rows of `runs` that a verb makes: a job's cursor, a run by hand, a backfill."""

from __future__ import annotations

from typing import Any

from onthedot.model.instant import NEVER
from onthedot.model.job import JobSpec
from onthedot.model.level import OWN_PARAMS, level_of
from onthedot.model.run import RunKind, run_id
from onthedot.plan import due_at, laned, ready_at

__all__ = ["JOB_ID", "cursor_row", "lane_of", "run_row"]

RunRow = tuple[Any, ...]
"""id, slot, kind, cursor, due_at, ready_at, parked, resume_at, backlog, n, tenant, job_id, recurring, requires, level,
lane, at_most_once: what `add_runs` takes, in this order."""
JOB_ID = 11
"""Where a row has its job."""


def lane_of(job_id: int, spec: JobSpec) -> int | None:
    return job_id if laned(spec.policy) else None


def cursor_row(tenant: int, job_id: int, spec: JobSpec, slot: int, *, lookahead: int, parked: bool) -> RunRow:
    jitter = spec.policy.jitter
    due = due_at(slot, run_id(job_id, slot), jitter) if jitter else slot
    ready = ready_at(due, lane=laned(spec.policy), lookahead=lookahead)
    return run_row(tenant, job_id, spec, slot, "scheduled", due=due, ready=ready, cursor=True, parked=parked)


def run_row(
    tenant: int,
    job_id: int,
    spec: JobSpec,
    slot: int,
    kind: RunKind,
    *,
    due: int,
    ready: int,
    n: int = 0,
    cursor: bool = False,
    parked: bool = False,
    backlog: bool = False,
    own_params: bool = False,
) -> RunRow:
    return (
        run_id(job_id, slot, kind, n),
        slot,
        kind,
        cursor,
        due,
        NEVER if parked else ready,
        "paused" if parked else None,
        ready if parked else None,
        backlog,
        n,
        tenant,
        job_id,
        not spec.schedule.one_off,
        spec.target.capability(),
        max(level_of(spec), OWN_PARAMS) if own_params else level_of(spec),
        lane_of(job_id, spec),
        spec.policy.delivery == "at_most_once",
    )
