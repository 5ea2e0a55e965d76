"""The page of nodes: who is there, how busy they are, what they can run; and draining one."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http.query_params import text
from onthedot.api.http.responses import HttpResponse
from onthedot.errors import NotFound
from onthedot.model.labels import type_of
from onthedot.model.node import NodeView
from onthedot.web.forms import read_form
from onthedot.web.links import is_local
from onthedot.web.page import action, asked_of, done, page, show

__all__ = ["abilities", "routes"]

FAR_OFF = 500
"""ms by which a clock may differ before it is worth a warning."""
BACK = (text("back", "The page to return to", longest=1500),)


@page("/nodes")
async def nodes(request: Request) -> HttpResponse:
    """The nodes page."""
    asked_of(request, ())
    service = service_of(request)
    found = await service.list_nodes()
    return await show(
        request,
        "nodes.html",
        far_off=FAR_OFF,
        nodes=sorted(found, key=lambda node: (node.state == "lost", node.started_at, node.id)),
        alive=sum(1 for node in found if node.state == "alive"),
        running=sum(node.running for node in found if node.state != "lost"),
        capacity=sum(node.capacity for node in found if node.state == "alive"),
        abilities=abilities,
    )


@page("/nodes/{node_id}/drain", query=BACK, access="admin")
async def ask_drain(request: Request) -> HttpResponse:
    """The question before a node is drained."""
    back = asked_of(request, BACK)["back"] or "/nodes"
    found = await service_of(request).list_nodes()
    node = next((node for node in found if node.id == request.path_params["node_id"]), None)
    if node is None:
        raise NotFound("this node no longer exists")
    others = [each for each in found if each.id != node.id and each.state == "alive" and "executor" in each.roles]
    return await show(
        request,
        "drain_node.html",
        node=node,
        others=len(others),
        action=f"/nodes/{node.id}/drain",
        go="Drain",
        tone="danger",
        return_to=back if is_local(back) else "/nodes",
    )


@action("/nodes/{node_id}/drain", access="admin")
async def drain(request: Request) -> HttpResponse:
    """Drain a node."""
    form = await read_form(request)
    node = await service_of(request).drain_node(tenant_of(request), request.path_params["node_id"])
    return done(
        request, f"{node.name} claims no more runs. It stops draining when it is started again.", form.back("/nodes")
    )


def abilities(node: NodeView) -> list[tuple[str, Sequence[str]]]:
    """What it can run: the type of target, and which of that type."""
    found: dict[str, list[str]] = {}
    for offer in node.offers:
        named = offer.partition(":")[2]
        found.setdefault(type_of(offer), []).extend([named] if named else [])
    return sorted(found.items())


routes = [nodes, ask_drain, drain]
