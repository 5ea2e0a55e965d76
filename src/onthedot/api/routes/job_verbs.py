"""Verbs on jobs: run, pause, resume, backfill, status."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import EmptyBody, read_json, read_optional_json
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.if_match import version_named
from onthedot.api.http.responses import HttpResponse
from onthedot.api.routes.job_routes import on_job
from onthedot.api.routes.shown_jobs import shown
from onthedot.model.job import JobStatus, JobView
from onthedot.model.run import RunView
from onthedot.model.struct import Strict

__all__ = ["routes"]


class Backfill(Strict, frozen=True, kw_only=True):
    """Which slots to run. `force`: also slots that are already done. `dry_run`: only list the slots."""

    start: str
    end: str
    force: bool = False
    dry_run: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1000


class PauseNote(Strict, frozen=True, kw_only=True):
    """`note`: the reason. `until` (RFC 3339): when the job resumes automatically."""

    note: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] | None = None
    until: str | None = None


class RunNow(Strict, frozen=True, kw_only=True):
    """`params` override those of the job for this run."""

    params: dict[str, Any] | None = None


class NewRuns(msgspec.Struct, frozen=True, omit_defaults=True):
    """The ids of the new runs; for a dry run the slots that would be run."""

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

    In addition to its schedule; also if the job is paused or ended.
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

    While it is paused, only runs that are requested explicitly start.
    """
    asked = await read_optional_json(request, PauseNote)
    key, version = await idempotency_key(request), await version_named(request, job_id)
    job = await service_of(request).pause_job(tenant_of(request), job_id, version, key, asked.note, asked.until)
    return responses.job_answer(await shown(request, job))


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

    Slots missed during the pause are not run.
    """
    await read_optional_json(request, EmptyBody)
    job = await service_of(request).resume_job(
        tenant_of(request), job_id, await version_named(request, job_id), await idempotency_key(request)
    )
    return responses.job_answer(await shown(request, job))


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

    Runs the slots of a past time range that are not done. With `dry_run` the response is 200 with these slots, and
    nothing changes.
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
    """Read the status of a job.

    Of the run that is executing, otherwise the next run, otherwise the last.
    """
    return responses.json(await service_of(request).job_status(tenant_of(request), job_id))


routes = [*run_job, *pause_job, *resume_job, *backfill_job, *job_status]
