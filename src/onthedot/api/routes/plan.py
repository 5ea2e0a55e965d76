"""What a change would do to the firings of jobs."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_json
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import MIB, operation
from onthedot.model.change_plan import ChangePlan, PlanRequest

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
    asked = await read_json(request, PlanRequest)
    return responses.json(await service_of(request).plan_changes(tenant_of(request), asked))


routes = [plan_changes]
