"""Backfill: run past firings of a job that were not done. First they are counted, then a bulk operation runs them."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http.path_ids import job_id_of
from onthedot.api.http.query_params import text
from onthedot.api.http.responses import HttpResponse
from onthedot.errors import Invalid
from onthedot.model.bulk import BulkCount, BulkRequest
from onthedot.model.duration import DAY
from onthedot.model.instant import format_instant
from onthedot.model.job import JobView
from onthedot.web import words
from onthedot.web.forms import RATE_MOST, Form, read_form
from onthedot.web.links import is_local
from onthedot.web.local_time import fire_times, in_zone, read_instant
from onthedot.web.page import action, asked_of, done, page, show
from onthedot.web.pages.job_actions import BACK, job_page
from onthedot.web.typed_count import check_typed, must_be_typed

__all__ = ["routes"]

ASKED = (
    *BACK,
    text("start", "From when on, in the time zone of the job or with an offset", longest=50),
    text("end", "Until when, both included", longest=50),
)
MOST = 1000
"""Firings that are listed at once; more are only counted."""
SHOWN = 5
FIELDS = ("start", "end", "force", "rate", "act", "typed", "shown")


class BackfillCount(msgspec.Struct, frozen=True, kw_only=True):
    """What would be run: how many firings, and the first and last few of them in the zone of the job."""

    slots: int
    exact: bool
    first: list[str]
    last: list[str]
    typed: bool

    @property
    def words(self) -> str:
        told = words.count_words(self.slots, "firing")
        return told if self.exact else told.replace(" firing", " or more firing")


@page("/jobs/{job_id}/backfill", query=ASKED)
async def ask_backfill(request: Request) -> HttpResponse:
    """Ask for the range."""
    asked, job = asked_of(request, ASKED), await _job(request)
    tz, names = job.schedule.tz, ("start", "end")
    given = {name: [in_zone(read_instant(name, asked[name], tz), tz)] for name in names if asked[name] is not None}
    back = asked["back"] if asked["back"] is not None and is_local(asked["back"]) else job_page(job.id)
    return await _form(request, job, Form(given), back)


@action("/jobs/{job_id}/backfill")
async def backfill(request: Request) -> HttpResponse:
    """Count what is to be run, or start the operation that runs it; a single one is run at once."""
    form, job = await read_form(request, *FIELDS), await _job(request)
    service, tenant, back = service_of(request), tenant_of(request), form.back(job_page(job.id))
    count = None
    try:
        wanted = _wanted(form, job)
        found = await service.count_operation(tenant, wanted)
        if form.text("act") == "one":
            return await _run_one(request, form, job, back)
        count = await _count(request, job, wanted, found)
        if form.text("act") != "start":
            return await _form(request, job, form, back, count=count)
        if not found.total:
            return done(request, "There was nothing to run: every firing of that range is done or under way", back)
        check_typed(form, found.total)
        started = await service.start_operation(
            tenant, msgspec.structs.replace(wanted, rate=form.number("rate", 1, RATE_MOST))
        )
    except Invalid as invalid:
        return await _form(request, job, form.refuse(_at_fields(invalid)), back, 422, count)
    return done(request, f"Backfilling {count.words}", f"/operations/{started.id}")


async def _run_one(request: Request, form: Form, job: JobView, back: str) -> HttpResponse:
    start, end = (read_instant(name, form.text(name), job.schedule.tz) for name in ("start", "end"))
    made = await service_of(request).backfill_job(tenant_of(request), job.id, start, end, form.flag("force"), 1)
    if not made:
        return done(request, "There was nothing to run: that firing is done or under way", back)
    return done(request, f"Started run {made[0]}, which gives way to firings that are due", back)


def _wanted(form: Form, job: JobView) -> BulkRequest:
    start, end = (read_instant(name, form.text(name), job.schedule.tz) for name in ("start", "end"))
    params = {"start": start, "end": end, "force": form.flag("force"), "by_slot": True}
    return BulkRequest(verb="backfill", ids=[job.id], params=params)


def _at_fields(error: Invalid) -> Invalid:
    return Invalid([msgspec.structs.replace(each, path=each.path.removeprefix("params.")) for each in error.problems])


async def _job(request: Request) -> JobView:
    return await service_of(request).get_job(tenant_of(request), job_id_of(request))


async def _form(
    request: Request, job: JobView, form: Form, back: str, status: int = 200, count: BackfillCount | None = None
) -> HttpResponse:
    now, tz = context_of(request).clock.now_ms(), job.schedule.tz
    return await show(
        request,
        "job_backfill.html",
        status=status,
        title=words.title(job),
        tz=tz,
        form=form,
        start=in_zone(format_instant(now - DAY), tz)[:16],
        end=in_zone(format_instant(now), tz)[:16],
        count=count,
        go="Count" if count is None or not count.slots else f"Run {count.words}",
        action=f"{job_page(job.id)}/backfill",
        return_to=back,
    )


async def _count(request: Request, job: JobView, wanted: BulkRequest, found: BulkCount) -> BackfillCount:
    said, tz = wanted.params or {}, job.schedule.tz
    local: list[str] = []
    if found.total <= MOST:
        try:
            slots = await service_of(request).slots_to_backfill(
                tenant_of(request), job.id, said["start"], said["end"], said["force"], MOST
            )
        except Invalid:  # few are missing of very many
            slots = []
        local = [each.local for each in fire_times(slots[:SHOWN] + slots[SHOWN:][-SHOWN:], tz)]
    return BackfillCount(
        slots=found.total,
        exact=found.total_exact,
        first=local[:SHOWN],
        last=local[SHOWN:],
        typed=must_be_typed(found.total),
    )


routes = [ask_backfill, backfill]
