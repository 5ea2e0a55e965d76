"""Dead letters: runs that failed permanently. Redriving creates new runs for them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_optional_json
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.paging import PAGING, RunList, page_answer
from onthedot.api.http.path_ids import RUN_ID_PATTERN
from onthedot.api.http.query_params import read_query
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.api.routes.job_verbs import NewRuns
from onthedot.api.routes.runs import JOB_ID
from onthedot.model.struct import Strict

__all__ = ["routes"]

FILTERS = (JOB_ID, *PAGING)
RunId = Annotated[str, msgspec.Meta(pattern=f"^{RUN_ID_PATTERN}$")]


class Redrive(Strict, frozen=True, kw_only=True):
    """Which dead letters: those with these ids, those of one job, or all, up to `limit`."""

    ids: Annotated[list[RunId], msgspec.Meta(max_length=1000)] | None = None
    job_id: Annotated[int, msgspec.Meta(ge=1)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1000


@operation("GET", "/v1/dead", "read", group="Dead letters", query=FILTERS, answers={200: RunList})
async def list_dead(request: Request) -> HttpResponse:
    """List dead letters."""
    asked = read_query(request.scope["query_string"], FILTERS)
    return page_answer(request, await service_of(request).list_dead(tenant_of(request), **asked))


@operation(
    "POST",
    "/v1/dead/redrive",
    "write",
    group="Dead letters",
    body=Redrive,
    body_required=False,
    answers={201: NewRuns},
    problems=(409,),
    idempotent=True,
    example={"job_id": 1},
)
async def redrive(request: Request) -> HttpResponse:
    """Redrive dead letters.

    Creates a new run for each.
    """
    asked = await read_optional_json(request, Redrive)
    made = await service_of(request).redrive(
        tenant_of(request), asked.ids, asked.job_id, asked.limit, await idempotency_key(request)
    )
    return responses.json(NewRuns(made), 201)


routes = [list_dead, redrive]
