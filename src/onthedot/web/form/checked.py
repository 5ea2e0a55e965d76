"""What a job that is being typed would mean: its schedule in words, its next fire times, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from onthedot.errors import FieldProblem, Invalid
from onthedot.model.change_plan import PlannedJob, PlanRequest
from onthedot.model.job import JobSpec
from onthedot.model.schedule import Schedule
from onthedot.service import Service
from onthedot.web.form.reading import job_of, schedule_of
from onthedot.web.local_time import FireTime, fire_times

__all__ = ["FormCheck", "check_form"]

NEXT = 10


class FormCheck(msgspec.Struct, frozen=True, kw_only=True):
    spec: JobSpec | None = None  # None: not valid
    problems: tuple[FieldProblem, ...] = ()
    words: str = ""
    tz: str = "UTC"
    fires: tuple[FireTime, ...] = ()
    remarks: tuple[str, ...] = ()
    effect: PlannedJob | None = None  # which firings the change adds, moves and removes; None: none

    def at(self, *paths: str) -> FieldProblem | None:
        """The problem of a field: its own, or one within it (`target.headers.Host` is shown at the headers)."""
        for problem in self.problems:
            if any(problem.path == path or problem.path.startswith((f"{path}.", f"{path}[")) for path in paths):
                return problem
        return None


async def check_form(service: Service, tenant: int, loose: Mapping[str, Any], job_id: int | None) -> FormCheck:
    """Everything that saving would check. The schedule is told even while other fields are not valid yet."""
    spec: JobSpec | None = None
    problems: tuple[FieldProblem, ...] = ()
    try:
        spec = job_of(loose)
        await service.check_job(tenant, spec, job_id)
    except Invalid as invalid:
        problems = invalid.problems
    schedule = spec.schedule if spec is not None else _schedule_of(loose)
    wrong = any(problem.path.startswith("schedule") for problem in problems)
    if schedule is None or wrong:
        return FormCheck(problems=problems)
    if job_id is None:
        schedule = schedule.in_default_zone(service.settings.default_tz)
    elif spec is not None:  # one that was stored without a zone is in UTC
        schedule = spec.in_zone_as_stored().schedule
    try:
        seen = await service.preview(schedule, count=NEXT)
    except Invalid as invalid:
        return FormCheck(problems=(*problems, *invalid.problems))  # a target without a URL does not hide them
    return FormCheck(
        spec=None if problems else spec,
        problems=problems,
        words=seen.description,
        tz=schedule.tz,
        fires=tuple(fire_times(seen.fires, schedule.tz)),
        remarks=tuple(seen.remarks),
        effect=None if problems or spec is None or job_id is None else await _effect(service, tenant, spec, job_id),
    )


async def _effect(service: Service, tenant: int, spec: JobSpec, job_id: int) -> PlannedJob | None:
    plan = await service.plan_changes(tenant, PlanRequest(id=job_id, spec=spec), busy=False)
    return next((job for job in plan.jobs if job.change == "changed"), None)


def _schedule_of(loose: Mapping[str, Any]) -> Schedule | None:
    try:
        return schedule_of(loose)
    except Invalid:
        return None
