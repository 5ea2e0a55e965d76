"""What the page of a job does: run it now, pause and resume it, skip a firing, delete it and bring it back."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http.path_ids import job_id_of
from onthedot.api.http.query_params import text
from onthedot.api.http.responses import HttpResponse
from onthedot.errors import Invalid
from onthedot.model.job import JobView
from onthedot.web import words
from onthedot.web.forms import Form, read_form
from onthedot.web.json_params import params_text, read_params
from onthedot.web.links import is_local
from onthedot.web.page import action, asked_of, done, page, show
from onthedot.web.pause_choice import PAUSE_FIELDS, PAUSES, pause_end

__all__ = ["BACK", "job_page", "return_to", "routes"]

BACK = (text("back", "Path of the page to return to", longest=1500),)


def job_page(job_id: int) -> str:
    return f"/jobs/{job_id}"


def return_to(request: Request, job_id: int) -> str:
    """Where the question came from: `ui.ask` says so."""
    back: str | None = asked_of(request, BACK)["back"]
    return back if back is not None and is_local(back) else job_page(job_id)


@page("/jobs/{job_id}/run", query=BACK)
async def ask_params(request: Request) -> HttpResponse:
    """Ask with which parameters to run it."""
    job = await _job(request)
    return await _params_form(request, job, Form(), return_to(request, job.id))


@action("/jobs/{job_id}/run")
async def run_now(request: Request) -> HttpResponse:
    """Run it now, beside its schedule."""
    form, job_id = await read_form(request, "params"), job_id_of(request)
    try:
        params = read_params(form.given("params"))
        run = await service_of(request).run_job(tenant_of(request), job_id, params=params)
    except Invalid as invalid:
        return await _params_form(request, await _job(request), form.refuse(invalid), form.back(job_page(job_id)), 422)
    return done(request, f"Started run {run.id}", form.back(job_page(job_id)))


@page("/jobs/{job_id}/pause", query=BACK)
async def ask_pause(request: Request) -> HttpResponse:
    """Ask why and until when to pause it."""
    job = await _job(request)
    return await _pause_form(request, job, Form(), return_to(request, job.id))


@action("/jobs/{job_id}/pause")
async def pause(request: Request) -> HttpResponse:
    """Pause it."""
    form, job = await read_form(request, *PAUSE_FIELDS), await _job(request)
    try:
        until = pause_end(form, job.schedule.tz, context_of(request).clock.now_ms())
        await service_of(request).pause_job(tenant_of(request), job.id, note=form.given("note"), until=until)
    except Invalid as invalid:
        return await _pause_form(request, job, form.refuse(invalid), form.back(job_page(job.id)), 422)
    return done(request, f"Paused {words.title(job)}", form.back(job_page(job.id)))


@action("/jobs/{job_id}/resume")
async def resume(request: Request) -> HttpResponse:
    """Resume it."""
    form = await read_form(request)
    job = await service_of(request).resume_job(tenant_of(request), job_id_of(request))
    return done(request, f"Resumed {words.title(job)}", form.back(job_page(job.id)))


@action("/jobs/{job_id}/skip")
async def skip(request: Request) -> HttpResponse:
    """Leave out one firing to come."""
    form = await read_form(request, "slot")
    job = await service_of(request).skip_slot(tenant_of(request), job_id_of(request), form.text("slot"))
    return done(request, f"Skipped the firing at {words.utc(form.text('slot'))}", form.back(job_page(job.id)))


@action("/jobs/{job_id}/unskip")
async def unskip(request: Request) -> HttpResponse:
    """Fire at a skipped instant after all."""
    form = await read_form(request, "slot")
    job = await service_of(request).unskip_slot(tenant_of(request), job_id_of(request), form.text("slot"))
    return done(request, f"It fires at {words.utc(form.text('slot'))} after all", form.back(job_page(job.id)))


@page("/jobs/{job_id}/delete", query=BACK)
async def ask_delete(request: Request) -> HttpResponse:
    """Ask before it is deleted."""
    job = await _job(request)
    return await show(
        request,
        "job_delete.html",
        title=words.title(job),
        version=job.version,
        action=f"{job_page(job.id)}/delete",
        return_to=return_to(request, job.id),
    )


@action("/jobs/{job_id}/delete")
async def delete(request: Request) -> HttpResponse:
    """Delete it; for some minutes it can be brought back."""
    form, job = await read_form(request, "version"), await _job(request)
    version = form.text("version")
    seen = int(version) if version.isdecimal() and len(version) < 19 else None
    await service_of(request).delete_job(tenant_of(request), job.id, seen)
    return done(request, f"Deleted {words.title(job)}.", "/jobs", undo=f"{job_page(job.id)}/undelete")


@action("/jobs/{job_id}/undelete")
async def undelete(request: Request) -> HttpResponse:
    """Bring it back as it was."""
    await read_form(request)
    job = await service_of(request).undelete_job(tenant_of(request), job_id_of(request))
    return done(request, f"{words.title(job)} is back", job_page(job.id))


async def _job(request: Request) -> JobView:
    return await service_of(request).get_job(tenant_of(request), job_id_of(request))


async def _params_form(request: Request, job: JobView, form: Form, back: str, status: int = 200) -> HttpResponse:
    return await show(
        request,
        "job_run.html",
        status=status,
        title=words.title(job),
        params=params_text(job.params),
        form=form,
        action=f"{job_page(job.id)}/run",
        return_to=back,
    )


async def _pause_form(request: Request, job: JobView, form: Form, back: str, status: int = 200) -> HttpResponse:
    return await show(
        request,
        "job_pause.html",
        status=status,
        title=words.title(job),
        form=form,
        pauses=PAUSES,
        tz=job.schedule.tz,
        action=f"{job_page(job.id)}/pause",
        return_to=back,
    )


routes = [ask_params, run_now, ask_pause, pause, resume, skip, unskip, ask_delete, delete, undelete]
