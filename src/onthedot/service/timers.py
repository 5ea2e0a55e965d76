"""Timers: shorthand for a job that POSTs to one URL once. The timer's id is the job's."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from onthedot.errors import Invalid, OnTheDotError
from onthedot.model.duration import DAY, HOUR, MINUTE, SECOND, Duration
from onthedot.model.instant import parse_rfc3339
from onthedot.model.job import JobSpec, JobView
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from onthedot.model.timer import TimerSpec, TimerView
from onthedot.service.checking import check_job
from onthedot.service.creates import CreateVerbs
from onthedot.service.repeats import IdempotencyKey, Repeat, idempotency
from onthedot.store.abandoned_requests import Asker

__all__ = ["TimerVerbs", "job_of_timer"]

LONGEST = 100 * 365 * DAY
WRITTEN_AS = {"target.url": "url", "schedule.in": "seconds"}  # a timer's user knows the timer's fields, not the job's


class TimerVerbs(CreateVerbs):
    async def create_timer(
        self, tenant: int, timer: TimerSpec, idempotency_key: IdempotencyKey | None = None
    ) -> TimerView:
        spec = job_of_timer(timer)
        try:
            check_job(spec, self.targets, tenant=tenant, now=await self.time.now())
        except Invalid as invalid:
            raise Invalid(
                [
                    msgspec.structs.replace(problem, path=WRITTEN_AS.get(problem.path, problem.path))
                    for problem in invalid.problems
                ]
            ) from None
        job = await self.create_checked(tenant, spec, idempotency("timers", idempotency_key, body=timer))
        return self._view(job, int(spec.schedule.in_ or 0), await self.time.now())

    def take_timer(
        self,
        tenant: int,
        timer: TimerSpec,
        answered: Callable[[TimerView | OnTheDotError], None],
        asker: Asker | None = None,
        repeat: Repeat | None = None,
    ) -> bool:
        """`create_timer` as `take_job` is `create_job`."""

        def as_timer(job: JobView | OnTheDotError) -> None:
            answered(self._view(job, total, self.time.carried()) if isinstance(job, JobView) else job)

        try:
            spec = job_of_timer(timer)
        except Invalid:
            return False
        total = int(spec.schedule.in_ or 0)
        return self.take_job(tenant, spec, as_timer, asker, repeat, "timers")

    def _view(self, job: JobView, total: int, now: int) -> TimerView:
        due = parse_rfc3339(job.next_run) if job.next_run is not None else None
        return TimerView(id=job.id, time_left=_whole_seconds(0 if due is None else min(due - now, total)))

    async def get_timer(self, tenant: int, timer_id: int) -> TimerView:
        return TimerView(id=timer_id, time_left=_whole_seconds(await self.store.timer_left(tenant, timer_id)))


def _whole_seconds(left: int) -> int:
    """Rounded up: 0 means due, never "nearly"."""
    return max(0, -(-left // SECOND))


def job_of_timer(timer: TimerSpec) -> JobSpec:
    total = timer.hours * HOUR + timer.minutes * MINUTE + timer.seconds * SECOND
    accepted = "hours, minutes and seconds with a total of more than 0 and at most 100 years"
    if total == 0:
        raise Invalid.one("seconds", "the timer has no duration", given=0, accepted=accepted)
    if total > LONGEST:
        raise Invalid.one("hours", "the timer is too long", given=timer.hours, accepted=accepted)
    return JobSpec(schedule=Schedule(in_=Duration(total)), target=WebhookTarget(url=timer.url))
