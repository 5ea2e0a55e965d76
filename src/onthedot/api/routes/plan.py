"""What a change would do to the firings of jobs."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_body
from onthedot.api.http.job_lists import job_specs, taken_apart
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import MIB, operation
from onthedot.model.change_plan import MOST_JOBS, ChangePlan, PlanRequest
from onthedot.model.decoding import decode_json
from onthedot.model.portions import ITEM_BYTES
from onthedot.service.aside import SMALL_BYTES, Aside

__all__ = ["routes"]


@operation(
    "POST",
    "/v1/plan",
    "read",
    group="Schedules",
    body=PlanRequest,
    answers={200: ChangePlan},
    limit=4 * MIB,
    example={"key": "nightly", "patch": {"schedule": {"cron": "0 4 * * *"}}, "days": 30},
)
async def plan_changes(request: Request) -> HttpResponse:
    """Plan a change of jobs.

    Which firings a change would add, move and remove, and the busiest minutes after it. Changes nothing.
    """
    raw = await read_body(request)
    asked = decode_json(raw, PlanRequest) if len(raw) <= SMALL_BYTES else await _large(raw, service_of(request).aside)
    del raw
    return responses.json(await service_of(request).plan_changes(tenant_of(request), asked))


async def _large(raw: bytes, aside: Aside) -> PlanRequest:
    asked, items = await taken_apart(raw, aside, PlanRequest, most=MOST_JOBS, field_bytes=ITEM_BYTES)
    if not items:
        return asked
    return msgspec.structs.replace(asked, jobs=await aside.collect(job_specs(items)))


routes = [plan_changes]
