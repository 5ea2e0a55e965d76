"""The page of alerts: incidents, who was told, and a test of each channel."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http.query_params import choice, text
from onthedot.api.http.responses import HttpResponse
from onthedot.model.alerts import CONDITIONS
from onthedot.web.forms import read_form
from onthedot.web.page import action, asked_of, done, page, show

__all__ = ["routes"]

CONDITION_WORDS = {"in_a_row": "Failures in a row"}
ASKED = (
    text("job", "ID or key of the job", longest=200),
    choice("condition", "What was found", CONDITIONS),
    choice("state", "Whether it lasts", ("open", "closed")),
    text("cursor", "Cursor of the page", longest=1000),
)
ROWS = 100


@page("/alerts", query=ASKED)
async def alerts(request: Request) -> HttpResponse:
    """The page of alerts."""
    asked, service = asked_of(request, ASKED), service_of(request)
    found = await service.list_incidents(tenant_of(request), **asked, limit=ROWS)
    return await show(
        request,
        "alerts.html",
        asked=asked,
        incidents=found.items,
        next=found.next,
        channels=service.list_channels(),
        conditions=[(each, CONDITION_WORDS.get(each) or each.replace("_", " ").capitalize()) for each in CONDITIONS],
        is_filtered=any(asked[name] for name in ("job", "condition", "state")),
    )


@action("/alerts/test", access="admin")
async def test_channel(request: Request) -> HttpResponse:
    """Send a test message."""
    form = await read_form(request, "channel")
    result = await service_of(request).test_channel(tenant_of(request), form.text("channel"))
    if result.delivered:
        return done(request, f"Delivered to {result.channel} in {result.duration_ms} ms", form.back("/alerts"))
    return done(request, f"Not delivered to {result.channel}: {result.error}", form.back("/alerts"), bad=True)


routes = [alerts, test_channel]
