"""The cluster: its nodes and its numbers."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import EmptyBody, read_optional_json
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.query_params import Param, read_query
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.model.node import NodeName, NodeView
from onthedot.store import StoreStats

__all__ = ["routes"]

MOST_NAMED = 100


class NodeList(msgspec.Struct, frozen=True):
    items: list[NodeView]


class NodeNames(msgspec.Struct, frozen=True):
    items: list[NodeName]


def _read_ids(given: str) -> list[str] | None:
    ids = list(dict.fromkeys(given.split(",")))
    return ids if len(ids) <= MOST_NAMED and all(0 < len(each) <= 100 for each in ids) else None


NAMED = (
    Param(
        name="ids",
        read=_read_ids,
        accepted=f"1 to {MOST_NAMED} IDs of nodes of 1 to 100 characters each, separated by commas",
        schema={"type": "string", "minLength": 1},
        description=f"IDs of nodes, separated by commas; up to {MOST_NAMED}",
        required=True,
    ),
)


@operation("GET", "/v1/nodes", "read", group="Cluster", answers={200: NodeList})
async def list_nodes(request: Request) -> HttpResponse:
    """List nodes.

    Running nodes and nodes that were lost recently. `lateness_ms` is how late runs begin on a node, at the 99th
    percentile; `clock_skew_ms` is by how much its clock is ahead of the database's (below 0: behind), by which all
    nodes fire. It is null for a lost node.
    """
    return responses.json(NodeList(await service_of(request).list_nodes()))


@operation("GET", "/v1/nodes/names", "read", group="Cluster", query=NAMED, answers={200: NodeNames})
async def node_names(request: Request) -> HttpResponse:
    """Read names of nodes.

    Runs tell the ID of their node, which is new with each start. Names are kept as long as the runs, also of nodes that
    have stopped; unknown IDs are left out.
    """
    ids = read_query(request.scope["query_string"], NAMED)["ids"]
    found = await service_of(request).node_names(ids)
    return responses.json(NodeNames([NodeName(id=each, name=found[each]) for each in ids if each in found]))


@operation(
    "POST",
    "/v1/nodes/{node_id}/drain",
    "admin",
    group="Cluster",
    body=EmptyBody,
    body_required=False,
    answers={200: NodeView},
    problems=(404, 409),
    idempotent=True,
)
async def drain_node(request: Request) -> HttpResponse:
    """Drain a node.

    Within a second it stops claiming runs. What it has claimed runs to its end, and its API keeps responding. A node
    that is started again claims again. Only for admins of the default tenant: nodes belong to all.
    """
    await read_optional_json(request, EmptyBody)
    node_id, key = request.path_params["node_id"], await idempotency_key(request)
    return responses.json(await service_of(request).drain_node(tenant_of(request), node_id, key))


@operation("GET", "/v1/stats", "read", group="Cluster", answers={200: StoreStats})
async def stats(request: Request) -> HttpResponse:
    """Read statistics."""
    return responses.json(await service_of(request).stats(tenant_of(request)))


routes = [list_nodes, node_names, drain_node, stats]
