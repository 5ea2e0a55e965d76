"""Versions of a job's definition: list them, go back to one."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import EmptyBody, read_optional_json
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.if_match import version_named
from onthedot.api.http.paging import PAGING, page_answer
from onthedot.api.http.path_ids import whole_id
from onthedot.api.http.query_params import read_query
from onthedot.api.http.responses import HttpResponse
from onthedot.api.routes.job_routes import on_job
from onthedot.api.routes.shown_jobs import shown
from onthedot.model.job import JobView
from onthedot.model.version import JobVersion

__all__ = ["routes"]


class VersionList(msgspec.Struct, frozen=True):
    """`next` is the URL of the next page, null on the last page."""

    items: list[JobVersion]
    next: str | None


@on_job("GET", "versions", "read", query=PAGING, answers={200: VersionList})
async def list_versions(request: Request, job_id: int) -> HttpResponse:
    """List the versions of a job.

    What the job was and who changed it, newest first. The last 50 versions are kept, within the retention period.
    Secrets are masked.
    """
    asked = read_query(request.scope["query_string"], PAGING)
    return page_answer(request, await service_of(request).list_versions(tenant_of(request), job_id, **asked))


@on_job(
    "POST",
    "versions/{version}/restore",
    "write",
    body=EmptyBody,
    body_required=False,
    answers={200: JobView},
    problems=(409,),
    idempotent=True,
    conditional=True,
    etag=True,
)
async def restore_version(request: Request, job_id: int) -> HttpResponse:
    """Restore a version of a job.

    An ordinary edit to what the job was at that version, as a new version. It stays paused or not paused; secrets that
    the job has now are kept.
    """
    await read_optional_json(request, EmptyBody)
    version = whole_id(request, "version", "version")
    key, if_match = await idempotency_key(request), await version_named(request, job_id)
    job = await service_of(request).restore_version(tenant_of(request), job_id, version, if_match, key)
    return responses.job_answer(await shown(request, job))


routes = [*list_versions, *restore_version]
