"""Bulk operations: one verb for all jobs or dead letters that match, with progress."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import EmptyBody, read_json, read_optional_json
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.paging import PAGING, page_answer
from onthedot.api.http.path_ids import operation_id_of
from onthedot.api.http.query_params import read_query
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.model.bulk import BulkCount, BulkOperation, BulkRequest
from onthedot.service import Repeat

__all__ = ["routes"]


class BulkOperationList(msgspec.Struct, frozen=True):
    """`next` is the URL of the next page, null on the last page."""

    items: list[BulkOperation]
    next: str | None


@operation(
    "POST",
    "/v1/operations",
    "write",
    group="Bulk operations",
    body=BulkRequest,
    answers={200: BulkCount, 202: BulkOperation},
    idempotent=True,
    example={"verb": "pause", "filter": {"tag": "reports"}, "params": {"note": "maintenance"}},
)
async def start_operation(request: Request) -> HttpResponse:
    """Start a bulk operation.

    Applies a verb to all jobs (`redrive`: dead letters) that match `filter`, or to those with these `ids`, in portions
    and in the background. Jobs that are created after the start are left out. With `dry_run` the response is 200 with
    the number that match, and nothing changes. `params` by verb: pause {note, until}, run {params}, tag {add, remove},
    backfill {start, end, force}, redrive {first, stop_at_failures}.
    """
    asked = await read_json(request, BulkRequest)
    service, tenant = service_of(request), tenant_of(request)
    if asked.dry_run:
        return responses.json(await service.count_operation(tenant, asked))
    started = await service.start_operation(tenant, asked, await idempotency_key(request))
    return responses.json(started, 202, {"location": f"/v1/operations/{started.id}"})


@operation("GET", "/v1/operations", "read", group="Bulk operations", query=PAGING, answers={200: BulkOperationList})
async def list_operations(request: Request) -> HttpResponse:
    """List bulk operations.

    Newest first.
    """
    asked = read_query(request.scope["query_string"], PAGING)
    return page_answer(request, await service_of(request).list_operations(tenant_of(request), **asked))


@operation("GET", "/v1/operations/{operation_id}", "read", group="Bulk operations", answers={200: BulkOperation})
async def get_operation(request: Request) -> HttpResponse:
    """Read a bulk operation.

    Its progress so far.
    """
    return responses.json(await service_of(request).get_operation(tenant_of(request), operation_id_of(request)))


async def _asked(request: Request) -> tuple[int, int, Repeat | None]:
    """Of a verb on an operation: whose, which one, and the key under which it is carried out once."""
    await read_optional_json(request, EmptyBody)
    return tenant_of(request), operation_id_of(request), await idempotency_key(request)


@operation(
    "POST",
    "/v1/operations/{operation_id}/abort",
    "write",
    group="Bulk operations",
    body=EmptyBody,
    body_required=False,
    answers={200: BulkOperation},
    problems=(409,),
    idempotent=True,
)
async def abort_operation(request: Request) -> HttpResponse:
    """Abort a bulk operation.

    It stops after the current portion. What is done stays done.
    """
    return responses.json(await service_of(request).abort_operation(*await _asked(request)))


@operation(
    "POST",
    "/v1/operations/{operation_id}/pause",
    "write",
    group="Bulk operations",
    body=EmptyBody,
    body_required=False,
    answers={200: BulkOperation},
    problems=(409,),
    idempotent=True,
)
async def pause_operation(request: Request) -> HttpResponse:
    """Pause a bulk operation.

    It stops after the current portion and stays paused, also across restarts of the server, until it is resumed or
    aborted.
    """
    return responses.json(await service_of(request).pause_operation(*await _asked(request)))


@operation(
    "POST",
    "/v1/operations/{operation_id}/resume",
    "write",
    group="Bulk operations",
    body=EmptyBody,
    body_required=False,
    answers={200: BulkOperation},
    problems=(409,),
    idempotent=True,
)
async def resume_operation(request: Request) -> HttpResponse:
    """Resume a bulk operation.

    It continues where it was paused.
    """
    return responses.json(await service_of(request).resume_operation(*await _asked(request)))


routes = [start_operation, list_operations, get_operation, abort_operation, pause_operation, resume_operation]
