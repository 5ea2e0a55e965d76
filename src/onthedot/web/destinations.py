"""The page of destinations: who is called, their circuit breakers, and what waits for them."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import principal_of, service_of
from onthedot.api.http import responses
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.web.problem_page import problem_page
from onthedot.web.templating import render

__all__ = ["routes"]


@operation(
    "GET",
    "/destinations",
    "read",
    answers={200: "text/html"},
    page=True,
    problem_page=problem_page,
    listed=False,
)
async def destinations(request: Request) -> HttpResponse:
    """The destinations page."""
    principal = principal_of(request)
    found = await service_of(request).list_destinations(principal.tenant)
    return responses.html(render("destinations.html", destinations=found, signed_in=principal.key_id is not None))


routes = [destinations]
