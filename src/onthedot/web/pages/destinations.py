"""The page of destinations: who is called, how long that takes, their circuit breakers, and what waits for them."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http.responses import HttpResponse
from onthedot.model.destination import DestinationView
from onthedot.service import Service
from onthedot.store import JobFilter
from onthedot.web.page import asked_of, page, show
from onthedot.web.parts import load

__all__ = ["routes"]

COUNTED_FOR = 20
"""Destinations, those in trouble first, whose jobs are counted."""
JOBS_MOST = 100


@page("/destinations")
async def destinations(request: Request) -> HttpResponse:
    """The destinations page."""
    asked_of(request, ())
    service, tenant = service_of(request), tenant_of(request)
    found = await service.list_destinations(tenant)
    jobs = await load(context_of(request).clock, _jobs(service, tenant, found[:COUNTED_FOR]))
    return await show(request, "destinations.html", destinations=found, jobs=jobs.value or {}, most=JOBS_MOST)


async def _jobs(service: Service, tenant: int, found: list[DestinationView]) -> dict[str, int]:
    """How many jobs that have not ended call each, up to one more than a hundred."""
    counts = {}
    for each in found:
        wanted = JobFilter(q=each.destination, ended=False, limit=JOBS_MOST + 1)
        counts[each.destination] = len((await service.list_jobs(tenant, wanted)).items)
    return counts


routes = [destinations]
