"""Verbs of a job, each under two paths: by the id and by the key of the job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http.path_ids import job_id_of, job_key_of
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import Access, Endpoint, Method, operation

__all__ = ["on_job"]

Verb = Callable[[Request, int], Awaitable[HttpResponse]]


def on_job(
    method: Method, verb: str, access: Access, *, group: str = "Jobs", answers: dict[int, Any], **more: Any
) -> Callable[[Verb], list[Endpoint]]:
    """Make two routes of a function that takes the request and the job's id."""
    rest = f"/{verb}" if verb else ""

    def declare(function: Verb) -> list[Endpoint]:
        async def by_id(request: Request) -> HttpResponse:
            return await function(request, job_id_of(request))

        async def by_key(request: Request) -> HttpResponse:
            job = await service_of(request).get_job_by_key(tenant_of(request), job_key_of(request))
            return await function(request, job.id)

        routes = []
        for path, name, handler in (("{job_id}", "", by_id), ("by-key/{key}", "_by_key", by_key)):
            handler.__name__, handler.__doc__ = f"{function.__name__}{name}", function.__doc__
            declared = operation(method, f"/v1/jobs/{path}{rest}", access, group=group, answers=answers, **more)
            routes.append(declared(handler))
        return routes

    return declare
