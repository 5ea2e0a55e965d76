"""What can be done with a job besides changing it: run, pause, resume, backfill, explain."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import EmptyBody, read_json, read_optional_json
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.if_match import version_named
from onthedot.api.http.query_params import instant, read_query
from onthedot.api.http.responses import HttpResponse
from onthedot.api.routes.job_routes import on_job
from onthedot.model.instant import format_instant
from onthedot.model.job import JobStatus, JobView
from onthedot.model.preview import Explanation
from onthedot.model.run import RunView
from onthedot.model.struct import Strict

__all__ = ["routes"]

AT = (instant("at", "The instant in question; left out: now"),)


class Backfill(Strict, frozen=True, kw_only=True):
    """Which slots to run again. `force`: also those that are done already. `dry_run`: only say which."""

    start: str
    end: str
    force: bool = False
    dry_run: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1000


class PauseNote(Strict, frozen=True, kw_only=True):
    """Why, for whoever reads it, and until when (RFC 3339): then the job goes on by itself."""

    note: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] | None = None
    until: str | None = None


class RunNow(Strict, frozen=True, kw_only=True):
    """`params` are this run's own, over those of its job."""

    params: dict[str, Any] | None = None


class NewRuns(msgspec.Struct, frozen=True, omit_defaults=True):
    """The ids of the runs that were made; of a dry run the slots that would be run."""

    runs: list[str]
    slots: list[str] | None = None


@on_job(
    "POST",
    "run",
    "write",
    body=RunNow,
    body_required=False,
    example={"params": {"day": "2026-03-01"}},
    answers={201: RunView},
    problems=(409,),
    idempotent=True,
    conditional=True,
)
async def run_job(request: Request, job_id: int) -> HttpResponse:
    """Run a job now.

    Beside its schedule; paused and ended jobs run too.
    """
    asked = await read_optional_json(request, RunNow)
    key, version = await idempotency_key(request), await version_named(request, job_id)
    run = await service_of(request).run_job(tenant_of(request), job_id, key, version, asked.params)
    return responses.json(run, 201, {"location": f"/v1/runs/{run.id}"})


@on_job(
    "POST",
    "pause",
    "write",
    body=PauseNote,
    body_required=False,
    example={"note": "maintenance", "until": "2100-01-01T06:00:00Z"},
    answers={200: JobView},
    problems=(409,),
    idempotent=True,
    conditional=True,
    etag=True,
)
async def pause_job(request: Request, job_id: int) -> HttpResponse:
    """Pause a job.

    Nothing of it starts any more but an explicit run.
    """
    asked = await read_optional_json(request, PauseNote)
    key, version = await idempotency_key(request), await version_named(request, job_id)
    job = await service_of(request).pause_job(tenant_of(request), job_id, version, key, asked.note, asked.until)
    return responses.job_answer(job)


@on_job(
    "POST",
    "resume",
    "write",
    body=EmptyBody,
    body_required=False,
    answers={200: JobView},
    problems=(409,),
    idempotent=True,
    conditional=True,
    etag=True,
)
async def resume_job(request: Request, job_id: int) -> HttpResponse:
    """Resume a job.

    Slots that passed meanwhile are not made up for.
    """
    await read_optional_json(request, EmptyBody)
    job = await service_of(request).resume_job(
        tenant_of(request), job_id, await version_named(request, job_id), await idempotency_key(request)
    )
    return responses.job_answer(job)


@on_job(
    "POST",
    "backfill",
    "write",
    body=Backfill,
    answers={200: NewRuns, 201: NewRuns},
    problems=(409,),
    idempotent=True,
    conditional=True,
    example={"start": "2026-03-01T00:00:00Z", "end": "2026-03-08T00:00:00Z"},
)
async def backfill_job(request: Request, job_id: int) -> HttpResponse:
    """Backfill a job.

    Runs the slots of a past time span that were not done. With `dry_run` it answers 200 with those slots, and changes
    nothing.
    """
    asked = await read_json(request, Backfill)
    if asked.dry_run:
        slots = await service_of(request).slots_to_backfill(
            tenant_of(request), job_id, asked.start, asked.end, asked.force, asked.limit
        )
        return responses.json(NewRuns([], slots))
    made = await service_of(request).backfill_job(
        tenant_of(request),
        job_id,
        asked.start,
        asked.end,
        asked.force,
        asked.limit,
        await idempotency_key(request),
        await version_named(request, job_id),
    )
    return responses.json(NewRuns(made), 201)


@on_job("GET", "status", "read", answers={200: JobStatus})
async def job_status(request: Request, job_id: int) -> HttpResponse:
    """Read the status of a job in short.

    Of the run that executes, else the next, else the last.
    """
    return responses.json(await service_of(request).job_status(tenant_of(request), job_id))


@on_job("GET", "explain", "read", query=AT, answers={200: Explanation})
async def explain_job(request: Request, job_id: int) -> HttpResponse:
    """Explain a job at an instant.

    Why it fired, did not fire, or will fire then.
    """
    at = read_query(request.scope["query_string"], AT)["at"]
    moment = format_instant(context_of(request).clock.now_ms() if at is None else at)
    return responses.json(await service_of(request).explain(tenant_of(request), job_id, moment))


routes = [*run_job, *pause_job, *resume_job, *backfill_job, *job_status, *explain_job]
