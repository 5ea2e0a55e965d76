"""Next firings of all jobs of a tenant. A job stands once, with how often it fires after that: one that fires each
second does not hide the others."""

from __future__ import annotations

from collections.abc import Iterator

from onthedot.errors import Invalid, OnTheDotError
from onthedot.model.duration import DAY
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.job import JobView
from onthedot.model.upcoming import UpcomingFiring, UpcomingList
from onthedot.plan.times import seed_of
from onthedot.service.base import ServiceBase
from onthedot.store import JobFilter
from onthedot.timing import compile_schedule, describe

__all__ = ["UpcomingVerbs"]

COUNTED = 100_000
"""Of a cron expression, day by day: a millisecond, up to 14 for a year. Of an interval it is a division."""
ANY = 2**62
FURTHEST = 366 * DAY


class UpcomingVerbs(ServiceBase):
    async def upcoming(self, tenant: int, until: int | None, limit: int, cursor: str | None) -> UpcomingList:
        """One page in the order of the next runs before `until` (default: a day from now). `next` is a cursor."""
        now = await self.time.now()
        end = now + DAY if until is None else until
        if end > now + FURTHEST:
            accepted = f"at most 366 days from now: {format_instant(now + FURTHEST)}"
            raise Invalid.one("until", "out of range", given=format_instant(end), accepted=accepted)
        page = await self.store.list_jobs(tenant, JobFilter(next_before=end, limit=limit, cursor=cursor))
        items = await self.aside.collect(_firings(page.items, end))
        return UpcomingList(until=format_instant(end), items=items, next=page.next)


def _firings(jobs: list[JobView], until: int) -> Iterator[UpcomingFiring]:
    for job in jobs:
        if job.next_run is not None:
            more, at_most = _more(job, until)
            yield UpcomingFiring(
                job_id=job.id,
                key=job.key,
                name=job.name,
                at=job.next_run,
                schedule=describe(job.schedule, job.key or ""),
                target=job.target.summary().line,
                more=more,
                more_at_most=at_most,
            )


def _more(job: JobView, until: int) -> tuple[int | None, int | None]:
    """How often it fires after its next run; if that is not known, how often at most, if that is."""
    at, schedule = parse_rfc3339(job.next_run or ""), job.schedule
    if schedule.one_off or at is None:
        return 0, None
    try:
        anchor = at - (schedule.every or 0)  # the next run is a slot: those after it follow from it
        times = compile_schedule(schedule, anchor=anchor, seed=seed_of(job))
    except OnTheDotError:  # it is quarantined when it comes due
        return 0, None
    found = times.count_between(at, until - 1, ANY if schedule.every is not None else COUNTED)
    if schedule.count is None or found == 0:
        return found, None
    left = schedule.count - 1  # how many slots it has used up is not known here
    return (None, left if found is None else min(found, left)) if left else (0, None)
