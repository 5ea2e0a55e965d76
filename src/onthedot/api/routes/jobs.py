"""Jobs: create, list, read, replace, change, delete."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_json, required_object
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.if_match import existence_wanted, version_named, version_wanted
from onthedot.api.http.paging import PAGING, JobList, page_answer
from onthedot.api.http.path_ids import job_id_of, job_key_of
from onthedot.api.http.query_params import choice, flag, instant, read_query, text
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.api.routes.job_routes import on_job
from onthedot.api.routes.shown_jobs import shown, shown_all
from onthedot.model.job import JobSpec, JobState, JobView
from onthedot.model.schedule import SCHEDULE_KINDS
from onthedot.model.targets.registry import target_types
from onthedot.store import JOB_SORTS, LAST_STATUSES, JobFilter

__all__ = ["job_created", "routes"]

FILTERS = (
    text(
        "q",
        "Words, case-insensitive: each is in the key, the name, a tag or the target; words of one or two letters at a "
        "beginning",
        longest=200,
    ),
    text("tag", "Jobs with this tag", longest=100),
    choice("status", "Jobs in this state", get_args(JobState)),
    choice("target", "Jobs with this type of target", target_types()),
    choice("schedule", "Jobs with this type of schedule", SCHEDULE_KINDS),
    text("owner", "Jobs of this owner", longest=200),
    choice(
        "last_status",
        "DONE, FAILED: jobs whose last finished run ended so. CANCELLED, SKIPPED: jobs whose newest run ended so",
        LAST_STATUSES,
    ),
    flag("failing", "Jobs whose last finished run failed, or (false) did not", default=None),
    flag(
        "late",
        "Jobs whose last run started more than 1 s late, or whose next run is overdue by that; false: the others",
        default=None,
    ),
    flag("never_ran", "Jobs without a finished run, or (false) with one", default=None),
    flag("ended", "Jobs that have ended, or (false) have not", default=None),
    instant("next_before", "Jobs whose next run is before this instant"),
    instant("next_after", "Jobs whose next run is at or after this instant"),
    choice(
        "sort",
        "Order: by name (or key), next run or last run; - reverses. Jobs without one come last, newest first",
        JOB_SORTS,
    ),
    *PAGING,
)
EXAMPLE = {
    "key": "nightly-report",
    "schedule": {"cron": "0 3 * * *", "tz": "Europe/Berlin"},
    "target": {"type": "webhook", "url": "https://example.com/hook", "body": {"a": 1}},
}
MERGE_PATCH = ("application/merge-patch+json", "application/json")


@operation(
    "POST",
    "/v1/jobs",
    "write",
    group="Jobs",
    body=JobSpec,
    answers={201: JobView},
    problems=(409,),
    idempotent=True,
    etag=True,
    example=EXAMPLE,
)
async def create_job(request: Request) -> HttpResponse:
    """Create a job.

    The job is stored durably when the response arrives. 409 if the `key` is taken.
    """
    spec = await read_json(request, JobSpec)
    job = await service_of(request).create_job(tenant_of(request), spec, await idempotency_key(request))
    return job_created(await shown(request, job))


def job_created(job: JobView) -> HttpResponse:
    return responses.job_answer(job, 201, {"location": f"/v1/jobs/{job.id}"})


@operation("GET", "/v1/jobs", "read", group="Jobs", query=FILTERS, answers={200: JobList})
async def list_jobs(request: Request) -> HttpResponse:
    """List jobs.

    A page can be short, or even empty, and still have a `next`: filters without an index of their own look at a limited
    number of jobs per page.
    """
    asked = read_query(request.scope["query_string"], FILTERS)
    page = await service_of(request).list_jobs(tenant_of(request), JobFilter(**asked))
    return page_answer(request, msgspec.structs.replace(page, items=await shown_all(request, page.items)))


@operation("GET", "/v1/jobs/{job_id}", "read", group="Jobs", answers={200: JobView}, etag=True)
async def get_job(request: Request) -> HttpResponse:
    """Read a job.

    Includes its next and last run and its statistics.
    """
    job = await service_of(request).get_job(tenant_of(request), job_id_of(request))
    return responses.job_answer(await shown(request, job))


@operation("GET", "/v1/jobs/by-key/{key}", "read", group="Jobs", answers={200: JobView}, etag=True)
async def get_job_by_key(request: Request) -> HttpResponse:
    """Read a job by its key."""
    job = await service_of(request).get_job_by_key(tenant_of(request), job_key_of(request))
    return responses.job_answer(await shown(request, job))


@operation(
    "PUT",
    "/v1/jobs/{job_id}",
    "write",
    group="Jobs",
    body=JobSpec,
    answers={200: JobView},
    problems=(409,),
    conditional=True,
    etag=True,
    example=EXAMPLE,
)
async def replace_job(request: Request) -> HttpResponse:
    """Replace a job.

    If the spec is equal to the current one, nothing changes, not even the version. A masked secret keeps its value, and
    `owner` left out keeps the owner. Everything else that is left out has its default: a paused job is resumed unless
    the body says `"paused": true`. `run_now` is refused: it is for new jobs.
    """
    service, tenant, job_id = service_of(request), tenant_of(request), job_id_of(request)
    spec = await read_json(request, JobSpec)
    if_match = await version_wanted(request.headers.get("if-match"), lambda: service.get_job(tenant, job_id))
    job = await service.replace_job(tenant, job_id, spec, if_match)
    return responses.job_answer(await shown(request, job))


@operation(
    "PUT",
    "/v1/jobs/by-key/{key}",
    "write",
    group="Jobs",
    body=JobSpec,
    answers={200: JobView, 201: JobView},
    problems=(409,),
    conditional=True,
    etag=True,
    example=EXAMPLE,
)
async def put_job_by_key(request: Request) -> HttpResponse:
    """Create or replace a job by its key.

    A paused job is resumed unless the body says `"paused": true`; use PATCH to change some fields only.
    `If-Match: *` only replaces and `If-None-Match: *` only creates; otherwise 412.
    """
    service, tenant, key = service_of(request), tenant_of(request), job_key_of(request)
    spec = await read_json(request, JobSpec)
    there = existence_wanted(request)
    if_match = await version_wanted(request.headers.get("if-match"), lambda: service.get_job_by_key(tenant, key))
    job, created = await service.put_job_by_key(tenant, key, spec, if_match, there=there)
    job = await shown(request, job)
    return responses.job_answer(job, 201 if created else 200, {"location": f"/v1/jobs/{job.id}"} if created else None)


class JobPatch(msgspec.Struct, frozen=True):
    """A JSON merge patch (RFC 7396): the fields to change; null removes a field."""


@on_job(
    "PATCH",
    "",
    "write",
    body=JobPatch,
    media=MERGE_PATCH,
    answers={200: JobView},
    problems=(409,),
    conditional=True,
    etag=True,
    example={"schedule": {"cron": "30 3 * * *"}},
)
async def patch_job(request: Request, job_id: int) -> HttpResponse:
    """Change a job.

    A JSON merge patch (RFC 7396): the fields to change; null removes a field.
    """
    service, tenant = service_of(request), tenant_of(request)
    patch = required_object(await read_json(request, Any))
    if_match = await version_named(request, job_id)
    job = await service.patch_job(tenant, job_id, patch, if_match)
    return responses.job_answer(await shown(request, job))


@on_job("DELETE", "", "write", answers={204: None}, conditional=True)
async def delete_job(request: Request, job_id: int) -> HttpResponse:
    """Delete a job.

    Its run history is kept. For 10 minutes it can be brought back with `undelete`.
    """
    service, tenant = service_of(request), tenant_of(request)
    if_match = await version_named(request, job_id)
    await service.delete_job(tenant, job_id, if_match)
    return responses.no_content()


routes = [create_job, list_jobs, get_job, get_job_by_key, replace_job, put_job_by_key, *patch_job, *delete_job]
