"""Events as they happen (server-sent events)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import StreamingResponse

from onthedot.api.auth import still_may_listen
from onthedot.api.context import context_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.problems import HttpProblem
from onthedot.api.http.query_params import flag, read_query
from onthedot.api.operations import operation

__all__ = ["routes"]


ASKED = (flag("digest", "At most one event per second, `changed`, instead of each event"),)


@operation(
    "GET", "/v1/events", "read", group="Cluster", query=ASKED, answers={200: "text/event-stream"}, problems=(429,)
)
async def events(request: Request) -> StreamingResponse:
    """Stream events.

    Events of this node: runs started, finished, retried and skipped; nodes that join and leave. `cluster.changed` tells
    that something happened on another node. With `digest` only one event a second, `changed`, tells that anything did.
    The stream ends within seconds after its key is revoked or expires, or after logout.
    Delivery is not guaranteed: a client that falls behind loses the oldest events and gets an event named `dropped`.
    """
    digest = read_query(request.scope["query_string"], ASKED)["digest"]
    streams = context_of(request).streams
    if streams.full:
        raise HttpProblem(429, "too many open event streams on this node", {"retry-after": "5"})
    tenant = tenant_of(request)
    listen = streams.listen_digest if digest else streams.listen
    listening = listen(tenant, lambda: still_may_listen(request, tenant))
    return responses.event_stream(listening)


routes = [events]
