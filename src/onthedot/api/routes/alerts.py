"""Incidents that alerts were sent for, and the channels they go to."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_json
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.paging import PAGING, page_answer
from onthedot.api.http.path_ids import whole_id
from onthedot.api.http.query_params import choice, instant, read_query, text
from onthedot.api.http.responses import HttpResponse, bundle_answer
from onthedot.api.operations import operation
from onthedot.model.alerts import CONDITIONS
from onthedot.model.bundle import IncidentBundle
from onthedot.model.incident import ChannelTest, ChannelTestRequest, ChannelView, IncidentView

__all__ = ["ALERT_FILTERS", "routes"]

ALERT_FILTERS = (
    text("job", "ID or key of the job", longest=200),
    choice("condition", "What was found", CONDITIONS),
    choice("state", "Whether it lasts", ("open", "closed")),
    instant("since", "Incidents opened at or after this instant"),
    instant("until", "Incidents opened at or before this instant"),
    *PAGING,
)


class IncidentList(msgspec.Struct, frozen=True):
    """`next` is the URL of the next page, null on the last page."""

    items: list[IncidentView]
    next: str | None


@operation("GET", "/v1/alerts", "read", group="Alerts", query=ALERT_FILTERS, answers={200: IncidentList})
async def list_alerts(request: Request) -> HttpResponse:
    """List incidents.

    One for each condition of a job while it lasts, newest first, with the messages that were sent. Lost nodes are
    listed for the default tenant.
    """
    asked = read_query(request.scope["query_string"], ALERT_FILTERS)
    return page_answer(request, await service_of(request).list_incidents(tenant_of(request), **asked))


@operation("GET", "/v1/alerts/{incident_id}/bundle", "read", group="Alerts", answers={200: IncidentBundle})
async def bundle_incident(request: Request) -> HttpResponse:
    """Download the bundle of an incident.

    The same file as of the run at which the incident was found last (`GET /v1/runs/{run_id}/bundle`), with the incident
    itself; without a run for what was found without one, such as a lost node. Secrets are masked.
    """
    incident_id = whole_id(request, "incident_id", "incident")
    found = await service_of(request).bundle_incident(tenant_of(request), incident_id)
    return bundle_answer(found, f"incident-{incident_id}")


class ChannelList(msgspec.Struct, frozen=True):
    items: list[ChannelView]


@operation("GET", "/v1/alerts/channels", "read", group="Alerts", answers={200: ChannelList})
async def list_channels(request: Request) -> HttpResponse:
    """List the channels of this node."""
    read_query(request.scope["query_string"], ())
    return responses.json(ChannelList(items=service_of(request).list_channels()))


@operation(
    "POST",
    "/v1/alerts/test",
    "admin",
    group="Alerts",
    body=ChannelTestRequest,
    answers={200: ChannelTest},
    problems=(409,),
    idempotent=True,
    example={"channel": "ops"},
)
async def test_channel(request: Request) -> HttpResponse:
    """Send a test message to a channel.

    The node that answers sends it at once, and waits. `delivered` says whether the channel accepted it.
    Only for admins of the default tenant: channels belong to all.
    """
    asked = await read_json(request, ChannelTestRequest)
    key = await idempotency_key(request)
    return responses.json(await service_of(request).test_channel(tenant_of(request), asked.channel, key))


routes = [list_alerts, bundle_incident, list_channels, test_channel]
