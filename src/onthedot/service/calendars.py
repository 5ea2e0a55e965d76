"""A job by days: what its runs became, and what is planned."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta

import msgspec

from onthedot.errors import Invalid
from onthedot.model.duration import DAY
from onthedot.model.instant import format_instant
from onthedot.model.job import JobRecord
from onthedot.model.slots import CalendarDay, JobCalendar
from onthedot.plan import EXACT, ToCome, to_come
from onthedot.service.base import ServiceBase
from onthedot.service.explained_slots import check_range
from onthedot.store import SlotCounts, SlotEntry, SlotState
from onthedot.timing.zones import close_names, from_local, is_zone, zone

__all__ = ["CalendarVerbs"]

MOST_DAYS = 400
PAST, AHEAD = 60 * DAY, 30 * DAY


class CalendarVerbs(ServiceBase):
    async def job_calendar(
        self, tenant: int, job_id: int, since: int | None = None, until: int | None = None, tz: str | None = None
    ) -> JobCalendar:
        """The days that since … until touch (60 past, 30 to come), in the zone asked for or that of the schedule."""
        job = await self.store.get_record(tenant, job_id)
        if until is None:
            until = (await self.time.now() + AHEAD) if since is None else since + PAST + AHEAD
        since = until - PAST - AHEAD if since is None else since
        check_range(since, until, MOST_DAYS)
        place = tz or job.spec.schedule.tz or "UTC"
        if not is_zone(place):
            close = ", ".join(close_names(place)) or "an IANA time zone such as Europe/Berlin"
            raise Invalid.one("tz", "unknown time zone", given=place[:100], accepted=close)
        days = list(_days(place, since, until))
        low, high = days[0].start, days[-1].end - 1
        state, counts = await self.store.slot_counts(tenant, job_id, low, high)
        return JobCalendar(
            job_id=job_id,
            tz=place,
            complete=counts.since is None,
            counted_since=None if counts.since is None else format_instant(counts.since),
            items=await self.aside.collect(_filled(days, job, state, counts)),
        )


class _Day(msgspec.Struct, frozen=True):
    date: str
    start: int
    end: int  # where the next one starts


def _days(place: str, since: int, until: int) -> Iterator[_Day]:
    day = datetime.fromtimestamp(since / 1000, UTC).astimezone(zone(place)).date()
    start = _midnight(place, day)
    while start <= until:
        following = day + timedelta(days=1)
        end = _midnight(place, following)
        if end > start:  # who moved over the date line left one out
            yield _Day(day.isoformat(), start, end)
        day, start = following, end


def _midnight(place: str, day: date) -> int:
    return from_local(place, datetime.combine(day, time())) or 0


def _filled(days: Sequence[_Day], job: JobRecord, state: SlotState, counts: SlotCounts) -> Iterator[CalendarDay]:
    ahead = to_come(job, state.cursor, state.taken, days[-1].end - 1)
    ended = sorted(counts.ended, key=lambda each: each.at)
    skipped = _skipped(days, counts.ranges, job, ahead)
    place = 0
    for day in days:
        found: Counter[str] = Counter()
        while place < len(ended) and ended[place].at < day.end:
            found[ended[place].status] += ended[place].count
            place += 1
        yield CalendarDay(
            date=day.date,
            since=format_instant(day.start),
            until=format_instant(day.end),
            done=found["done"],
            failed=found["failed"],
            cancelled=found["cancelled"],
            skipped=found["skipped"] + skipped[day.date],
            running=sum(day.start <= run.slot < day.end and _runs(run) for run in state.live),
            planned=ahead.count(day.start, day.end - 1)
            + sum(day.start <= run.slot < day.end and not _runs(run) for run in state.live),
        )


def _runs(run: SlotEntry) -> bool:
    return run.status == "EXECUTING" or run.began


def _skipped(days: Sequence[_Day], spans: Sequence[SlotEntry], job: JobRecord, ahead: ToCome) -> Counter[str]:
    """How many slots of ranges are of each day. Of a former schedule nobody knows: all are told on the first day."""
    found: Counter[str] = Counter()
    for span in spans:
        last = span.slot if span.until is None else span.until
        place = max(0, bisect_right(days, span.slot, key=lambda day: day.start) - 1)
        day = days[place]
        if span.slot < job.anchor_at or day.start <= span.slot <= last < day.end:
            if span.slot >= day.start:
                found[day.date] += span.count or EXACT
            continue
        while place < len(days) and days[place].start <= last:
            day = days[place]
            low, high = max(span.slot, day.start), min(last, day.end - 1)
            found[day.date] += ahead.times.count_between(low - 1, high, 10**9) or 0
            place += 1
    return found
