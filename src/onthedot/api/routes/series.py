"""Numbers over time."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.query_params import choice, instant, integer, read_query
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.api.routes.job_routes import on_job
from onthedot.model.series import STEPS, RunSeries, StatsSeries

__all__ = ["routes"]

RANGE = (
    choice("step", "Length of a step; default: minute", STEPS),
    instant("since", "The first step; default: 60 minutes, 48 hours or 30 days back"),
    instant("until", "The end of the last step; default: now"),
)
LAST = (integer("limit", "Maximum number of runs", 1, 500, 100),)


@operation("GET", "/v1/stats/series", "read", group="Cluster", query=RANGE, answers={200: StatsSeries})
async def stats_series(request: Request) -> HttpResponse:
    """Read statistics over time.

    Ended runs per minute, hour or day (UTC) with lateness and duration, at most 3,000 steps. Steps in which nothing
    ended are included. Minutes are kept for 2 days, hours for 90 days, days for 2 years.
    """
    asked = read_query(request.scope["query_string"], RANGE)
    series = await service_of(request).stats_series(
        tenant_of(request), asked["step"] or "minute", asked["since"], asked["until"]
    )
    return responses.json(series)


@on_job("GET", "series", "read", query=LAST, answers={200: RunSeries})
async def run_series(request: Request, job_id: int) -> HttpResponse:
    """Read lateness and duration of the last runs of a job."""
    limit = read_query(request.scope["query_string"], LAST)["limit"]
    return responses.json(await service_of(request).run_series(tenant_of(request), job_id, limit))


routes = [stats_series, *run_series]
