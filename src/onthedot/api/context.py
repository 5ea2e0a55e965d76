"""What handlers work with, found through the request."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from starlette.requests import HTTPConnection

from onthedot.api.http.sse import EventStreams
from onthedot.api.server.limits import Bodies
from onthedot.clock import Clock
from onthedot.model.node import SlotUse
from onthedot.service import Principal, Service
from onthedot.telemetry.metrics import Metrics
from onthedot.version import __version__

__all__ = [
    "Context",
    "NodeReport",
    "address_of",
    "base_of",
    "context_of",
    "principal_of",
    "root_of",
    "scheme_of",
    "service_of",
    "tenant_of",
]


class NodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """How this node is, for whoever watches it."""

    service: Service
    metrics: Metrics
    clock: Clock
    ready: Callable[[], str | None] = lambda: None  # why the engine of this node is not ready; None: it is
    lacking: Callable[[], str | None] = lambda: None  # what this machine has run out of, while less runs for it
    intake: Callable[[], dict[str, str]] = dict  # by name: "ok", or why no messages of it are carried out
    mailboxes: Callable[[], dict[str, tuple[int, int]]] = dict  # of the engine: messages that wait, and how many may
    slots: Callable[[], dict[str, SlotUse]] = dict  # by kind of target; empty: it executes nothing
    node_id: Callable[[], str | None] = lambda: None
    version: str = __version__


class Context(NodeReport, frozen=True, kw_only=True):
    streams: EventStreams
    bodies: Bodies = msgspec.field(default_factory=Bodies)
    documents: dict[str, bytes] = msgspec.field(default_factory=dict)  # what the API says of itself, once asked for


def context_of(connection: HTTPConnection) -> Context:
    context: Context = connection.app.context
    return context


def principal_of(connection: HTTPConnection) -> Principal:
    """Set by the guard; a public route has none and may not ask."""
    principal: Principal = connection.scope["principal"]
    return principal


def address_of(connection: HTTPConnection) -> str:
    """Who is at the other end, for the log. Behind a proxy that is not trusted it is the proxy."""
    client = connection.scope.get("client")
    return "unknown" if client is None else str(client[0])


def scheme_of(connection: HTTPConnection) -> str:
    """https if who asks speaks TLS, with us or with a proxy in front. What a browser says of its own page is believed:
    it concerns the asker alone (the address that is shown, and whether the cookie may travel without TLS)."""
    if connection.headers.get("origin", "").lower().startswith("https://"):
        return "https"
    return str(connection.scope.get("scheme", "http"))  # a create that came in one piece has none


def root_of(connection: HTTPConnection) -> str:
    """The prefix of every path as clients see it; "" for none."""
    return service_of(connection).settings.root_path


def base_of(connection: HTTPConnection) -> str:
    """Where this server is, as who asks sees it."""
    host = connection.headers.get("host", "127.0.0.1:8000")
    return f"{scheme_of(connection)}://{host}{root_of(connection)}"


def tenant_of(connection: HTTPConnection) -> int:
    return principal_of(connection).tenant


def service_of(connection: HTTPConnection) -> Service:
    return context_of(connection).service
