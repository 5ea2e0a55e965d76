"""The page of one run: its story, request and response, log, and what can be done with it."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http.path_ids import run_id_of
from onthedot.api.http.query_params import text
from onthedot.api.http.responses import HttpResponse
from onthedot.errors import Invalid, NotFound
from onthedot.model.destination import DestinationView
from onthedot.model.job import JobView
from onthedot.model.run import RunView
from onthedot.model.run_request import as_curl
from onthedot.service import Service
from onthedot.web import words
from onthedot.web.forms import Form, read_form
from onthedot.web.json_params import params_text, read_params
from onthedot.web.links import is_local
from onthedot.web.page import action, asked_of, done, page, show
from onthedot.web.parts import load_all
from onthedot.web.run_compare import ComparedLine, compare
from onthedot.web.run_story import LIVE, asked_by, story_of, trigger_words, verdict_of

__all__ = ["routes"]

ASKED = (text("log", "Only lines of the log that contain this", longest=200),)
RETURN = (text("back", "Page to return to", longest=1000),)


@page("/runs/{run_id}", query=ASKED)
async def run_page(request: Request) -> HttpResponse:
    """The run page."""
    asked, run_id = asked_of(request, ASKED), run_id_of(request)
    service, tenant = service_of(request), tenant_of(request)
    run = await service.inspect_run(tenant, run_id)
    parts = await load_all(
        context_of(request).clock,
        log=service.run_logs(tenant, run_id),
        job=_job(service, tenant, run.job_id),
        nodes=service.node_names(each.node for each in (run, *run.attempts, *(run.refused or ()))),
        good=_last_good(service, tenant, run),
        place=_place(service, tenant, run),
    )
    names = parts["nodes"].value or {}
    job, good = parts["job"].value, parts["good"].value
    return await show(
        request,
        "run.html",
        asked=asked,
        run=run,
        job=job,
        title=(words.title(job) if job else None) or run.key or f"Job {run.job_id}",
        zone=None if job is None else job.schedule.tz,
        verdict=verdict_of(run),
        place=parts["place"].value,
        story=story_of(run, names),
        started_by=trigger_words(run),
        asked_by=asked_by(run),
        is_live=run.status in LIVE,
        curl=as_curl(run.request) if run.request else None,
        body=_text(run.request.body) if run.request else None,
        answer=None if not run.response else run.response,
        result=_text(None if run.result is msgspec.UNSET else run.result),
        result_note=(run.outcome or {}).get("result_note"),
        params=_text(run.params),
        good=good,
        compared=_compared(run, good),
        log=parts["log"],
        lines=lines_of(parts["log"].value or "", asked["log"]),
    )


async def _job(service: Service, tenant: int, job_id: int) -> JobView | None:
    """None: it was deleted."""
    try:
        return await service.get_job(tenant, job_id)
    except NotFound:
        return None


async def _place(service: Service, tenant: int, run: RunView) -> DestinationView | None:
    """The destination that the run waits for: a broker is one, too."""
    if run.waiting not in ("destination", "broker"):
        return None
    found = await service.list_destinations(tenant)
    return next((each for each in found if each.destination == run.waiting_for), None)


async def _last_good(service: Service, tenant: int, run: RunView) -> RunView | None:
    return await service.last_good_run(tenant, run) if run.status == "FAILED" else None


def _compared(run: RunView, good: RunView | None) -> list[ComparedLine]:
    return [] if good is None else compare(run, good)


def lines_of(log: str, wanted: str | None) -> str:
    if wanted is None:
        return log
    return "\n".join(line for line in log.splitlines() if wanted.lower() in line.lower())


def _text(value: object) -> str | None:
    """JSON as people read it; text as it is."""
    if value is None:
        return None
    if isinstance(value, str):
        return value
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


@page("/runs/{run_id}/cancel", query=RETURN)
async def ask_cancel(request: Request) -> HttpResponse:
    """Ask before a run is cancelled."""
    return await _ask(request, "cancel", Form())


@action("/runs/{run_id}/cancel")
async def cancel(request: Request) -> HttpResponse:
    """Cancel the run."""
    run_id, form = run_id_of(request), await read_form(request)
    run = await service_of(request).cancel_run(tenant_of(request), run_id)
    over = run.status == "CANCELLED"
    said = f"Cancelled run {run_id}" if over else f"Run {run_id} is being stopped by its node"
    return done(request, said, form.back(f"/runs/{run_id}"))


@page("/runs/{run_id}/retry", query=RETURN)
async def ask_params(request: Request) -> HttpResponse:
    """Ask with which parameters to run it again."""
    return await _ask_params(request, Form(), asked_of(request, RETURN)["back"])


@action("/runs/{run_id}/retry")
async def retry(request: Request) -> HttpResponse:
    """Run it again, as a new run; with other parameters, if they are given."""
    run_id, form = run_id_of(request), await read_form(request, "params")
    try:
        params = read_params(form.given("params"))
        new = await service_of(request).retry_run(tenant_of(request), run_id, params=params)
    except Invalid as invalid:
        return await _ask_params(request, form.refuse(invalid), form.back(f"/runs/{run_id}"), 422)
    return done(request, f"Run {run_id} is tried again: this is the new run", f"/runs/{new.id}")


async def _ask_params(request: Request, form: Form, back: str | None, status: int = 200) -> HttpResponse:
    run_id, service, tenant = run_id_of(request), service_of(request), tenant_of(request)
    here = f"/runs/{run_id}"
    run = await service.get_run(tenant, run_id)
    job = await _job(service, tenant, run.job_id)
    return await show(
        request,
        "run_retry.html",
        status=status,
        run=run,
        job=job,
        params=params_text({**({} if job is None else job.params), **(run.params or {})}),
        form=form,
        action=f"{here}/retry",
        return_to=back if back is not None and is_local(back) else here,
    )


async def _ask(request: Request, verb: str, form: Form, status: int = 200) -> HttpResponse:
    run_id, here = run_id_of(request), f"/runs/{run_id_of(request)}"
    run = await service_of(request).get_run(tenant_of(request), run_id)
    return await show(
        request,
        "run_question.html",
        status=status,
        verb=verb,
        run=run,
        form=form,
        action=f"{here}/{verb}",
        go="Cancel run" if run.status in LIVE else None,
        tone="danger",
        return_to=asked_of(request, RETURN)["back"] or here,
    )


routes = [run_page, ask_cancel, cancel, ask_params, retry]
