"""Jobs that were deleted: bring one back."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import EmptyBody, read_optional_json
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.if_match import parse_if_match
from onthedot.api.http.path_ids import job_id_of, job_key_of
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.api.routes.shown_jobs import shown
from onthedot.model.job import JobView

__all__ = ["routes"]

_SAID: dict[str, Any] = {
    "group": "Jobs",
    "body": EmptyBody,
    "body_required": False,
    "answers": {200: JobView},
    "problems": (409,),
    "idempotent": True,
    "conditional": True,
    "etag": True,
}


@operation("POST", "/v1/jobs/{job_id}/undelete", "write", **_SAID)
async def undelete_job(request: Request) -> HttpResponse:
    """Bring back a deleted job.

    For 10 minutes after it was deleted; then 404. It keeps its ID, key, version and history. Slots that passed while
    it was deleted are not run. 409 if its key is used by another job now. `If-Match` refers to the version that it had
    when it was deleted.
    """
    return await _bring_back(request, job_id_of(request))


@operation("POST", "/v1/jobs/by-key/{key}/undelete", "write", **_SAID)
async def undelete_job_by_key(request: Request) -> HttpResponse:
    """Bring back a deleted job by its key.

    The one with this key that was deleted last.
    """
    return await _bring_back(request, await service_of(request).deleted_by_key(tenant_of(request), job_key_of(request)))


async def _bring_back(request: Request, job_id: int) -> HttpResponse:
    await read_optional_json(request, EmptyBody)
    key, versions = await idempotency_key(request), parse_if_match(request.headers.get("if-match"))
    job = await service_of(request).undelete_job(tenant_of(request), job_id, key, versions)
    return responses.job_answer(await shown(request, job))


routes = [undelete_job, undelete_job_by_key]
