"""Numbers over time: of a tenant, from what the duty has counted; of a job, from its last runs."""

from __future__ import annotations

from onthedot.errors import Invalid
from onthedot.model.histogram import percentile
from onthedot.model.instant import format_instant
from onthedot.model.series import STEPS, RunPoint, RunSeries, StatsPoint, StatsSeries, Step
from onthedot.service.base import ServiceBase
from onthedot.store import CountedSeries, RunFilter

__all__ = ["MOST_POINTS", "SeriesVerbs"]

MOST_POINTS = 3000
"""More than there are minutes in the two days for which they are kept."""
SHOWN: dict[Step, int] = {"minute": 60, "hour": 48, "day": 30}
"""How many points, unless `since` says otherwise."""


class SeriesVerbs(ServiceBase):
    async def stats_series(
        self, tenant: int, step: Step, since: int | None = None, until: int | None = None
    ) -> StatsSeries:
        """Every step from the one that `since` is in to the one that `until` is in, also those in which nothing ended.
        Without `until` up to now."""
        size = STEPS[step]
        last = await self.time.now() if until is None else until
        end = last - last % size + (size if until is None or last % size else 0)
        begin = end - SHOWN[step] * size if since is None else since - since % size
        if not 0 < end - begin <= MOST_POINTS * size:
            raise Invalid.one(
                "since",
                "out of range",
                given=format_instant(begin),
                accepted=f"before until, and at most {MOST_POINTS} steps before it",
            )
        counted = await self.store.series(tenant, step, begin, end)
        return StatsSeries(
            step=step,
            since=format_instant(begin),
            until=format_instant(end),
            counted_until=None if counted.counted_until is None else format_instant(counted.counted_until),
            items=_points(counted, begin, end, size),
        )

    async def run_series(self, tenant: int, job_id: int, limit: int) -> RunSeries:
        """Lateness and duration of the job's last ended runs."""
        await self.store.get_record(tenant, job_id)
        page = await self.store.list_runs(tenant, RunFilter(job_id=job_id, limit=limit))
        return RunSeries(
            job_id=job_id,
            items=[
                RunPoint(
                    run_id=run.id,
                    scheduled_for=run.scheduled_for,
                    finished_at=run.finished_at,
                    status=run.status,
                    lateness_ms=run.lateness_ms,
                    duration_ms=run.duration_ms,
                )
                for run in reversed(page.items)
                if run.finished_at is not None
            ],
        )


def _points(counted: CountedSeries, begin: int, end: int, size: int) -> list[StatsPoint]:
    found = {row.at: row for row in counted.rows}
    points = []
    for at in range(begin, end, size):
        row = found.get(at)
        if row is None:
            points.append(_nothing(format_instant(at)))
            continue
        lateness = row.histogram()
        points.append(
            StatsPoint(
                at=format_instant(at),
                firings=row.firings,
                done=row.done,
                failed=row.failed,
                cancelled=row.cancelled,
                skipped=row.skipped,
                lateness_p50_ms=percentile(lateness, 50),
                lateness_p99_ms=percentile(lateness, 99),
                duration_avg_ms=round(row.duration_ms / row.timed, 3) if row.timed else None,
                duration_max_ms=row.longest_ms,
            )
        )
    return points


def _nothing(at: str) -> StatsPoint:
    return StatsPoint(
        at=at,
        firings=0,
        done=0,
        failed=0,
        cancelled=0,
        skipped=0,
        lateness_p50_ms=None,
        lateness_p99_ms=None,
        duration_avg_ms=None,
        duration_max_ms=None,
    )
