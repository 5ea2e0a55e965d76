"""Destinations: who is called, whether their circuit breakers are open, and what waits for them."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.path_ids import destination_of
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.model.destination import DestinationDetail, DestinationView

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


@operation(
    "GET",
    "/v1/destinations/{destination}",
    "read",
    group="Cluster",
    answers={200: DestinationDetail},
)
async def get_destination(request: Request) -> HttpResponse:
    """Read a destination.

    Also one that is not called now. `destination` is scheme, host and port, percent-encoded
    (`https%3A%2F%2Fexample.com`), or the name of a broker. With the jobs that call it, and the last of their runs that
    failed.
    """
    return await _answer(request)


@operation(
    "GET", "/v1/destinations/{scheme}/{host}", "read", group="Cluster", answers={200: DestinationDetail}, listed=False
)
async def get_destination_with_slashes(request: Request) -> HttpResponse:
    """The same, for proxies that replace `%2F%2F` by a slash."""
    return await _answer(request)


async def _answer(request: Request) -> HttpResponse:
    name = destination_of(request)
    return responses.json(await service_of(request).get_destination(tenant_of(request), name))


routes = [list_destinations, get_destination, get_destination_with_slashes]
