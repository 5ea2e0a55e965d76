"""Jobs as people see them: rows → JobView, and reading them inside a transaction that also does something else."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.errors import NotFound
from onthedot.model.instant import format_instant
from onthedot.model.job import JobPause, JobSpec, JobState, JobStats, JobView
from onthedot.model.secrets import masked
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.rows import decode_spec

__all__ = ["LISTED", "VIEW", "job_view", "listed_views", "no_job", "read_view", "read_views", "view_of"]

VIEW = "+columns.view+joins.view"
"""Put after a statement's name: what a JobView is made of, next run and statistics included."""

LISTED = "+columns.listed+joins.view"
"""The same without large specs, for `listed_views`."""

NO_STATS = JobStats()


class _EndedRun(msgspec.Struct, frozen=True, array_like=True):
    """One of `ended_runs`, in the order in which `columns.view` writes it."""

    id: str
    status: str
    finished_at: int
    duration_ms: int | None
    lateness_ms: int | None


_ended = msgspec.json.Decoder(list[_EndedRun])


def no_job(job_id: int) -> NotFound:
    return NotFound(f"job {job_id} not found")


async def read_view(tx: Transaction, tenant: int, job_id: int) -> JobView:
    row = await tx.row("get_job" + VIEW, tenant, job_id)
    if row is None:
        raise no_job(job_id)
    return job_view(row)


async def read_views(tx: Transaction, tenant: int, ids: Sequence[int]) -> dict[int, JobView]:
    views = [job_view(row) for row in await tx.rows("get_jobs" + VIEW, tenant, list(ids))]
    return {view.id: view for view in views}


async def listed_views(tx: Transaction, tenant: int, rows: Sequence[Row]) -> list[JobView]:
    """Of the rows of a page. Jobs with a large spec are read here; one that is gone since is left out."""
    large = [row["id"] for row in rows if row["spec"] is None]
    whole = await read_views(tx, tenant, large) if large else {}
    found = [whole.get(row["id"]) if row["spec"] is None else job_view(row) for row in rows]
    return [view for view in found if view is not None]


def job_view(row: Row) -> JobView:
    """A row of the `job_view` columns: the job, its next run, its statistics."""
    ended = row["ended_runs"]
    stats, last_run = _one_off_stats(ended) if ended is not None else (_recurring_stats(row), row["last_run"])
    return view_of(
        decode_spec(row["spec"]),
        job_id=row["id"],
        version=row["version"],
        state=row["state"],
        reason=row["reason"],
        next_run=row["next_run"],
        last_run=last_run,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        stats=stats,
        paused_at=row["paused_at"],
        pause_note=row["pause_note"],
        pause_until=row["pause_until"],
    )


def _recurring_stats(row: Row) -> JobStats:
    if row["runs"] is None:
        return NO_STATS
    return JobStats(
        runs=row["runs"],
        failures=row["failures"],
        avg_duration_ms=_average(int(row["duration_ms"]), row["timed"]),
        last_duration_ms=row["last_duration_ms"],
        last_lateness_ms=row["last_lateness_ms"],
        last_status=None if row["last_status"] is None else row["last_status"].upper(),
        last_run_id=row["last_run_id"],
    )


def _one_off_stats(text: str) -> tuple[JobStats, int | None]:
    """A one-off job has no row of statistics: its few ended runs say it all."""
    runs = _ended.decode(text)
    if not runs:
        return NO_STATS, None
    last = max(runs, key=lambda run: run.finished_at)
    durations = [run.duration_ms for run in runs if run.duration_ms is not None]
    return JobStats(
        runs=len(runs),
        failures=sum(run.status == "failed" for run in runs),
        avg_duration_ms=_average(sum(durations), len(durations)),
        last_duration_ms=last.duration_ms,
        last_lateness_ms=last.lateness_ms,
        last_status=last.status.upper(),
        last_run_id=last.id,
    ), last.finished_at


def _average(total: int, count: int) -> float | None:
    return round(total / count, 3) if count else None


def view_of(
    spec: JobSpec,
    *,
    job_id: int,
    version: int,
    state: JobState,
    next_run: int | None,
    created_at: int,
    updated_at: int,
    reason: str | None = None,
    last_run: int | None = None,
    stats: JobStats = NO_STATS,
    paused_at: int | None = None,
    pause_note: str | None = None,
    pause_until: int | None = None,
) -> JobView:
    pause = None
    if state == "paused" and paused_at is not None:
        until = None if pause_until is None else format_instant(pause_until)
        pause = JobPause(since=format_instant(paused_at), note=pause_note, until=until)
    return JobView(
        id=job_id,
        key=spec.key,
        name=spec.name,
        schedule=spec.schedule,
        target=masked(spec.target),
        policy=spec.policy,
        params=spec.params,
        tags=spec.tags,
        paused=spec.paused,
        version=version,
        state=state,
        reason=reason,
        next_run=None if next_run is None or state == "paused" else format_instant(next_run),  # held ahead: recalled
        last_run=None if last_run is None else format_instant(last_run),
        created_at=format_instant(created_at),
        updated_at=format_instant(updated_at),
        stats=stats,
        owner=spec.owner or None,
        pause=pause,
        keep_result=spec.keep_result,
        requires=spec.requires or [],
        on_success=spec.on_success or [],
        on_failure=spec.on_failure or [],
        on_finish=spec.on_finish or [],
        alerts=spec.alerts,
        objective=spec.objective,
    )
