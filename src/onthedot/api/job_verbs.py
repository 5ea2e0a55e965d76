"""What can be done with a job besides changing it: run, pause, resume, backfill, explain."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar.response.base import ASGIResponse

from onthedot.api import answers
from onthedot.api.bodies import read_json
from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.idempotency import idempotency_key
from onthedot.api.identifiers import job_id_of
from onthedot.api.operations import Req, operation
from onthedot.api.queries import instant, read_query
from onthedot.model.instant import format_instant
from onthedot.model.job import JobView
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


class NewRuns(msgspec.Struct, frozen=True, omit_defaults=True):
    """The ids of the runs that were made; of a dry run the slots that would be run."""

    runs: list[str]
    slots: list[str] | None = None


@operation(
    "POST", "/v1/jobs/{job_id}/run", "write", group="Jobs", answers={201: RunView}, problems=(409,), idempotent=True
)
async def run_job(request: Req) -> ASGIResponse:
    """Run a job now.

    Beside its schedule; paused and ended jobs run too.
    """
    run = await service_of(request).run_job(tenant_of(request), job_id_of(request), idempotency_key(request))
    return answers.json(run, 201, {"location": f"/v1/runs/{run.id}"})


@operation("POST", "/v1/jobs/{job_id}/pause", "write", group="Jobs", answers={200: JobView}, problems=(409,), etag=True)
async def pause_job(request: Req) -> ASGIResponse:
    """Pause a job.

    Nothing of it starts any more but an explicit run.
    """
    return answers.job_answer(await service_of(request).pause_job(tenant_of(request), job_id_of(request)))


@operation(
    "POST", "/v1/jobs/{job_id}/resume", "write", group="Jobs", answers={200: JobView}, problems=(409,), etag=True
)
async def resume_job(request: Req) -> ASGIResponse:
    """Resume a job.

    Slots that passed meanwhile are not made up for.
    """
    return answers.job_answer(await service_of(request).resume_job(tenant_of(request), job_id_of(request)))


@operation(
    "POST",
    "/v1/jobs/{job_id}/backfill",
    "write",
    group="Jobs",
    body=Backfill,
    answers={200: NewRuns, 201: NewRuns},
    problems=(409,),
    idempotent=True,
    example={"start": "2026-03-01T00:00:00Z", "end": "2026-03-08T00:00:00Z"},
)
async def backfill_job(request: Req) -> ASGIResponse:
    """Backfill a job.

    Runs the slots of a past time span that were not done. With `dry_run` it answers 200 with those slots, and changes
    nothing.
    """
    job_id, asked = job_id_of(request), await read_json(request, Backfill)
    if asked.dry_run:
        slots = await service_of(request).slots_to_backfill(
            tenant_of(request), job_id, asked.start, asked.end, asked.force, asked.limit
        )
        return answers.json(NewRuns([], slots))
    made = await service_of(request).backfill_job(
        tenant_of(request), job_id, asked.start, asked.end, asked.force, asked.limit, idempotency_key(request)
    )
    return answers.json(NewRuns(made), 201)


@operation("GET", "/v1/jobs/{job_id}/explain", "read", group="Jobs", query=AT, answers={200: Explanation})
async def explain_job(request: Req) -> ASGIResponse:
    """Explain a job at an instant.

    Why it fired, did not fire, or will fire then.
    """
    at = read_query(request.scope["query_string"], AT)["at"]
    moment = format_instant(context_of(request).clock.now_ms() if at is None else at)
    return answers.json(await service_of(request).explain(tenant_of(request), job_id_of(request), moment))


routes = [run_job, pause_job, resume_job, backfill_job, explain_job]
