"""Destinations: who is called, whether their circuit breakers are open, and what waits for them."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.model.destination import DestinationView

__all__ = ["routes"]


class DestinationList(msgspec.Struct, frozen=True):
    items: list[DestinationView]


@operation("GET", "/v1/destinations", "read", group="Cluster", answers={200: DestinationList})
async def list_destinations(request: Request) -> HttpResponse:
    """List destinations.

    Destinations (scheme, host and port of webhooks) that are called now, that failed last, or that runs wait for; those
    in trouble first, at most 500. Circuit breakers and calls in flight are those of each node, as of its last
    heartbeat, and of at most 32 destinations per node. Destinations belong to a tenant.
    """
    return responses.json(DestinationList(await service_of(request).list_destinations(tenant_of(request))))


routes = [list_destinations]
