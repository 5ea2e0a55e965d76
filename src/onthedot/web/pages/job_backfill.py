"""Backfill: run past firings of a job that were not done. First they are counted, then they are run."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http.path_ids import job_id_of
from onthedot.api.http.responses import HttpResponse
from onthedot.errors import Invalid
from onthedot.model.duration import DAY
from onthedot.model.instant import format_instant
from onthedot.model.job import JobView
from onthedot.web import words
from onthedot.web.forms import Form, read_form
from onthedot.web.local_time import fire_times, in_zone, read_instant
from onthedot.web.page import action, done, page, show
from onthedot.web.pages.job_actions import BACK, job_page, return_to

__all__ = ["routes"]

MOST = 1000
SHOWN = 5


class BackfillCount(msgspec.Struct, frozen=True, kw_only=True):
    """What would be run: how many firings, and the first and last few of them in the zone of the job."""

    slots: int
    first: list[str]
    last: list[str]
    full: bool


@page("/jobs/{job_id}/backfill", query=BACK)
async def ask_backfill(request: Request) -> HttpResponse:
    """Ask for the range."""
    job = await _job(request)
    return _form(request, job, Form(), return_to(request, job.id))


@action("/jobs/{job_id}/backfill")
async def backfill(request: Request) -> HttpResponse:
    """Count what is to be run, or run it."""
    form, job = await read_form(request, "start", "end", "force", "act"), await _job(request)
    service, tenant, back = service_of(request), tenant_of(request), form.back(job_page(job.id))
    force = form.flag("force")
    try:
        start, end = (read_instant(name, form.text(name), job.schedule.tz) for name in ("start", "end"))
        if form.text("act") != "start":
            slots = await service.slots_to_backfill(tenant, job.id, start, end, force, MOST)
            return _form(request, job, form, back, count=_count(slots, job.schedule.tz))
        made = await service.backfill_job(tenant, job.id, start, end, force, MOST)
    except Invalid as invalid:
        return _form(request, job, form.refuse(invalid), back, 422)
    if not made:
        return done(request, "There was nothing to run: every firing of that range is done or under way", back)
    return done(request, f"Started {words.count_words(len(made), 'run')}, which give way to firings that are due", back)


async def _job(request: Request) -> JobView:
    return await service_of(request).get_job(tenant_of(request), job_id_of(request))


def _form(
    request: Request, job: JobView, form: Form, back: str, status: int = 200, count: BackfillCount | None = None
) -> HttpResponse:
    now, tz = context_of(request).clock.now_ms(), job.schedule.tz
    return show(
        request,
        "job_backfill.html",
        status=status,
        title=words.title(job),
        tz=tz,
        form=form,
        start=in_zone(format_instant(now - DAY), tz)[:16],
        end=in_zone(format_instant(now), tz)[:16],
        count=count,
        go="Count" if count is None or not count.slots else f"Run {words.count_words(count.slots, 'firing')}",
        action=f"{job_page(job.id)}/backfill",
        return_to=back,
    )


def _count(slots: list[str], tz: str) -> BackfillCount:
    local = [each.local for each in fire_times(slots[:SHOWN] + slots[SHOWN:][-SHOWN:], tz)]
    return BackfillCount(slots=len(slots), first=local[:SHOWN], last=local[SHOWN:], full=len(slots) >= MOST)


routes = [ask_backfill, backfill]
