"""Rows of `runs` that are about to be: one shape for successors, backlog and redriven runs."""

from __future__ import annotations

from typing import Any

from onthedot.model.instant import NEVER
from onthedot.model.job import JobRecord
from onthedot.model.level import level_of
from onthedot.model.run import RunKind, run_id
from onthedot.plan import due_at, laned, ready_at

__all__ = ["new_run"]


def new_run(
    job: JobRecord,
    slot: int,
    now: int,
    *,
    lookahead: int,
    kind: RunKind = "scheduled",
    n: int = 0,
    cursor: bool = False,
    backlog: bool = False,
    parent: str | None = None,
    not_before: int | None = None,
) -> tuple[Any, ...]:
    """The columns of `insert_runs`, in its order. A paused job's run waits for the resume.

    not_before: ready at the earliest then, for what is put into the queue late: a claim looks no further back than it
    has to.
    """
    spec = job.spec
    name = run_id(job.id, slot, kind, n)
    lane = laned(spec.policy)
    due = due_at(slot, name, spec.policy.jitter) if kind == "scheduled" else now
    ready = ready_at(due, lane=lane, lookahead=lookahead)
    if not_before is not None:
        ready = max(ready, not_before)
    paused = job.state == "paused"
    return (
        name,
        job.tenant,
        job.id,
        slot,
        kind,
        cursor,
        not spec.schedule.one_off,
        due,
        NEVER if paused else ready,
        "paused" if paused else None,
        ready if paused else None,
        spec.target.capability(),
        backlog,
        level_of(spec),
        job.id if lane else None,
        spec.policy.delivery == "at_most_once",
        parent,
        n,
        now,
    )
