"""The page of destinations: who is called, their circuit breakers, and what waits for them."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http.responses import HttpResponse
from onthedot.web.page import asked_of, page, show

__all__ = ["routes"]


@page("/destinations")
async def destinations(request: Request) -> HttpResponse:
    """The destinations page."""
    asked_of(request, ())
    found = await service_of(request).list_destinations(tenant_of(request))
    return show(request, "destinations.html", destinations=found)


routes = [destinations]
