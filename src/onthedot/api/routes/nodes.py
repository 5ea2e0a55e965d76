"""The cluster: its nodes and its numbers."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.model.node import NodeView
from onthedot.store import StoreStats

__all__ = ["routes"]


class NodeList(msgspec.Struct, frozen=True):
    items: list[NodeView]


@operation("GET", "/v1/nodes", "read", group="Cluster", answers={200: NodeList})
async def list_nodes(request: Request) -> HttpResponse:
    """List nodes.

    Running nodes and nodes that were lost recently.
    """
    return responses.json(NodeList(await service_of(request).list_nodes()))


@operation("POST", "/v1/nodes/{node_id}/drain", "admin", group="Cluster", answers={200: NodeView}, problems=(404, 409))
async def drain_node(request: Request) -> HttpResponse:
    """Drain a node.

    Within a second it stops claiming runs. What it has claimed runs to its end, and its API keeps responding. A node
    that is started again claims again. Only for admins of the default tenant: nodes belong to all.
    """
    return responses.json(await service_of(request).drain_node(tenant_of(request), request.path_params["node_id"]))


@operation("GET", "/v1/stats", "read", group="Cluster", answers={200: StoreStats})
async def stats(request: Request) -> HttpResponse:
    """Read statistics."""
    return responses.json(await service_of(request).stats(tenant_of(request)))


routes = [list_nodes, drain_node, stats]
