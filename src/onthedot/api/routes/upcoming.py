"""What is to come: next firings of all jobs, starts per minute."""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.paging import PAGING
from onthedot.api.http.query_params import instant, integer, read_query
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.model.upcoming import Forecast, UpcomingList

__all__ = ["routes"]

NEXT = (instant("until", "Firings before this instant; default: 24 hours from now"), *PAGING)
AHEAD = (integer("hours", "How far to look ahead", 1, 48, 24),)


@operation("GET", "/v1/upcoming", "read", group="Schedules", query=NEXT, answers={200: UpcomingList})
async def upcoming(request: Request) -> HttpResponse:
    """List upcoming firings.

    The next firing of each job, in order of time, and how often the job fires after that before `until`.
    """
    asked = read_query(request.scope["query_string"], NEXT)
    found = await service_of(request).upcoming(tenant_of(request), asked["until"], asked["limit"], asked["cursor"])
    if found.next is None:
        return responses.json(found)
    query = urlencode({"until": found.until, "limit": asked["limit"], "cursor": found.next})
    following = f"{request.scope['path']}?{query}"
    return responses.json(
        msgspec.structs.replace(found, next=following), headers={"link": f'<{following}>; rel="next"'}
    )


@operation("GET", "/v1/forecast", "read", group="Schedules", query=AHEAD, answers={200: Forecast})
async def forecast(request: Request) -> HttpResponse:
    """Forecast starts per minute.

    Of the 5,000 jobs with the earliest next runs, with the five busiest minutes and jobs that fire in them. Computed at
    most once a minute.
    """
    hours = read_query(request.scope["query_string"], AHEAD)["hours"]
    return responses.json(await service_of(request).forecast(tenant_of(request), hours))


routes = [upcoming, forecast]
