"""Starts per minute of the next hours, against what the nodes can carry out.

Of at most `MOST_JOBS` jobs, those with the earliest next runs, and for at most `LONGEST` seconds: the answer says what
it covers. Jobs that say the same cron expression in the same zone are computed once. An answer serves for a minute, and
all who ask meanwhile wait for the same one: it is computed to its end also if none of them does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence

from onthedot.errors import OnTheDotError
from onthedot.model.duration import DAY, HOUR, MINUTE
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.job import JobView
from onthedot.model.upcoming import BusyMinute, Forecast, ForecastJob
from onthedot.plan.times import seed_of
from onthedot.service.base import ServiceBase
from onthedot.store import JobFilter
from onthedot.timing import Timetable, compile_schedule
from onthedot.timing.timetable import Once

__all__ = ["ForecastVerbs", "by_minute"]

MOST_JOBS = 5000
PAGE = 100  # some milliseconds of the loop
LONGEST = 3.0
GOOD_FOR = MINUTE
NAMED = 5
_PER_MINUTE = 60_000


class ForecastVerbs(ServiceBase):
    _forecasts: dict[tuple[int, int], tuple[int, asyncio.Future[Forecast]]] | None = None

    async def forecast(self, tenant: int, hours: int = 24) -> Forecast:
        now = await self.time.now()
        kept = {key: each for key, each in (self._forecasts or {}).items() if now - each[0] < GOOD_FOR}
        self._forecasts = kept
        if (tenant, hours) not in kept:
            kept[tenant, hours] = now, asyncio.ensure_future(self._computed(tenant, hours, now))
        pending = kept[tenant, hours][1]
        try:
            return await asyncio.shield(pending)
        except OnTheDotError:
            kept.pop((tenant, hours), None)
            raise

    async def _computed(self, tenant: int, hours: int, now: int) -> Forecast:
        since = now - now % MINUTE
        until = since + hours * HOUR
        jobs, cursor, complete = list[JobView](), None, False
        while not complete and len(jobs) < MOST_JOBS:
            page = await self.store.list_jobs(tenant, JobFilter(next_before=until, limit=PAGE, cursor=cursor))
            jobs += page.items
            cursor, complete = page.next, page.next is None
        groups = await self.aside.run(_groups, jobs)
        counted = await self.aside.collect(_counts(groups, max(since, now - 1), until))
        starts = await self.aside.run(_summed, counted, since // _PER_MINUTE, hours * 60)
        measured = await self.store.series(tenant, "minute", since - DAY, since)
        nodes = await self.store.list_nodes()
        covered = groups[: len(counted)]
        return Forecast(
            since=format_instant(since),
            until=format_instant(until),
            computed_at=format_instant(now),
            jobs=sum(len(members) for _, members in covered),
            complete=complete and len(counted) == len(groups),
            capacity=sum(node.capacity for node in nodes if node.state == "alive" and "executor" in node.roles),
            measured_per_minute=max((row.firings for row in measured.rows), default=0),
            starts=starts,
            busiest=await self.aside.collect(_busiest(covered, since, starts)),
        )


_Group = tuple[Timetable, list[JobView]]


def _groups(jobs: Sequence[JobView]) -> list[_Group]:
    """Jobs with the same slots, the largest groups first."""
    found: dict[tuple[object, ...], _Group] = {}
    for job in jobs:
        at, schedule = parse_rfc3339(job.next_run or ""), job.schedule
        if at is None:
            continue
        hashed = schedule.cron is not None and "H" in schedule.cron.upper()
        same = (
            *(schedule.cron, schedule.tz, schedule.start, schedule.end, seed_of(job) if hashed else None),
            *(schedule.every, at % schedule.every if schedule.every else at if schedule.one_off else None),
        )
        if same not in found:
            times = _timetable(job, at)
            if times is None:
                continue
            found[same] = times, []
        found[same][1].append(job)
    return sorted(found.values(), key=lambda group: -len(group[1]))


def _timetable(job: JobView, at: int) -> Timetable | None:
    if job.schedule.one_off:
        return Once(at)
    try:  # the next run is a slot: those after it follow from it
        times = compile_schedule(job.schedule, anchor=at - (job.schedule.every or 0), seed=seed_of(job))
    except OnTheDotError:
        return None
    return times if times.is_slot(at) else Once(at)  # not: what `H` hashes has a secret, which a view masks


def _counts(groups: Sequence[_Group], after: int, until: int) -> Iterator[dict[int, int]]:
    """Of each group the starts by minute, as long as there is time."""
    end = time.monotonic() + LONGEST
    for times, members in groups:
        if time.monotonic() > end:
            return
        yield {minute: count * len(members) for minute, count in by_minute(times, after, until).items()}


def _summed(counted: Sequence[dict[int, int]], first: int, minutes: int) -> list[int]:
    starts = [0] * minutes
    for counts in counted:
        for minute, count in counts.items():
            starts[minute - first] += count
    return starts


def by_minute(times: Timetable, after: int, until: int) -> dict[int, int]:
    found: dict[int, int] = {}
    slot = times.next_after(after)
    while slot is not None and slot < until:
        minute, following = slot // _PER_MINUTE, times.next_after(slot)
        if following is not None and following // _PER_MINUTE == minute:  # counted, not walked through
            last = min(until, (minute + 1) * _PER_MINUTE) - 1
            found[minute] = times.count_between(slot - 1, last, _PER_MINUTE) or 0
            following = times.next_after(last)
        else:
            found[minute] = 1
        slot = following
    return found


def _busiest(groups: Sequence[_Group], since: int, starts: Sequence[int]) -> Iterator[BusyMinute]:
    minutes = sorted((minute for minute in range(len(starts)) if starts[minute]), key=lambda m: (-starts[m], m))
    for minute in minutes[:NAMED]:
        yield _busy(groups, since + minute * MINUTE, starts[minute])


def _busy(groups: Sequence[_Group], at: int, starts: int) -> BusyMinute:
    named: list[ForecastJob] = []
    for times, members in groups:
        count = times.count_between(at - 1, at + MINUTE - 1, _PER_MINUTE) or 0
        if count:
            named += [ForecastJob(job_id=job.id, key=job.key, name=job.name, starts=count) for job in members[:NAMED]]
    named.sort(key=lambda job: (-job.starts, job.job_id))
    return BusyMinute(at=format_instant(at), starts=starts, jobs=named[:NAMED])
