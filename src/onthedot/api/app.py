"""The application: all routes behind one guard, the middleware around them, and the fast path beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from starlette.types import Receive, Scope, Send

from onthedot.api import fastpath
from onthedot.api.context import Context
from onthedot.api.fastpath.creates import FastPath
from onthedot.api.http.behind_proxy import BehindProxy
from onthedot.api.http.middleware import HttpMiddleware
from onthedot.api.http.sse import EventStreams
from onthedot.api.openapi.document import openapi_document
from onthedot.api.operations import Endpoint
from onthedot.api.routes import (
    alerts,
    audit,
    batch,
    bulk,
    callbacks,
    dead_letters,
    deleted_jobs,
    destinations,
    docs,
    events,
    freezes,
    groups,
    health,
    job_chain,
    job_explain,
    job_slots,
    job_verbs,
    job_versions,
    jobs,
    keys,
    metrics,
    nodes,
    pings,
    plan,
    preview,
    proof,
    runs,
    scripts,
    series,
    settings,
    sync,
    timers,
    upcoming,
)
from onthedot.api.routing import ApiRouter, check_declared
from onthedot.clock import Clock, SystemClock
from onthedot.model.node import SlotUse
from onthedot.service import Service
from onthedot.telemetry import Telemetry, telemetry
from onthedot.telemetry.metrics import Metrics

__all__ = ["ROUTES", "App", "create_app"]

ROUTES: tuple[Endpoint, ...] = (
    *timers.routes,
    *jobs.routes,
    *job_verbs.routes,
    *job_chain.routes,
    *job_explain.routes,
    *job_versions.routes,
    *job_slots.routes,
    *alerts.routes,
    *audit.routes,
    *deleted_jobs.routes,
    *batch.routes,
    *sync.routes,
    *runs.routes,
    *bulk.routes,
    *callbacks.routes,
    *pings.routes,
    *dead_letters.routes,
    *preview.routes,
    *plan.routes,
    *nodes.routes,
    *freezes.routes,
    *series.routes,
    *proof.routes,
    *settings.routes,
    *upcoming.routes,
    *destinations.routes,
    *groups.routes,
    *events.routes,
    *scripts.routes,
    *keys.routes,
    *health.routes,
    *metrics.routes,
    *docs.routes,
)


class App:
    """The ASGI application."""

    def __init__(self, endpoints: Sequence[Endpoint], context: Context, *, fast: bool = fastpath.ENABLED) -> None:
        """`fast`: whether creates may take the fast path."""
        self.context = context
        self.router = ApiRouter(endpoints)
        check_declared(self.router.routes)
        self.operations = tuple(endpoint.operation for endpoint in endpoints)
        settings = context.service.settings
        proxy = BehindProxy(settings.root_path, settings.trusted_proxies)
        self._middleware = HttpMiddleware(self.router, context.metrics, context.clock, context.bodies, proxy)
        self.fastpath = FastPath(self, endpoints, self._middleware, context.service) if fast else None

    @cached_property
    def openapi(self) -> dict[str, Any]:
        """Made when somebody asks: a node's start does not wait for it."""
        return openapi_document(self.operations, self.context.version)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = self
        await self._middleware(scope, receive, send)

    def close_streams(self) -> None:
        self.context.streams.close()


def create_app(
    service: Service,
    *,
    clock: Clock | None = None,
    metrics: Metrics | None = None,
    events: Telemetry | None = None,
    ready: Callable[[], str | None] = lambda: None,
    lacking: Callable[[], str | None] = lambda: None,
    intake: Callable[[], dict[str, str]] = dict,
    mailboxes: Callable[[], dict[str, tuple[int, int]]] = dict,
    slots: Callable[[], dict[str, SlotUse]] = dict,
    node_id: Callable[[], str | None] = lambda: None,
    extra_routes: Sequence[Endpoint] = (),
    fast: bool = fastpath.ENABLED,
) -> App:
    """`ready` says why this node's engine is not ready (None: it is), `lacking` what it is short of,
    `mailboxes` how many messages wait in it, `slots` how many runs it executes.
    `extra_routes`: the pages, declared like ours."""
    clock = clock or SystemClock()
    context = Context(
        service=service,
        streams=EventStreams(events or telemetry, clock),
        metrics=metrics or Metrics(),
        clock=clock,
        ready=ready,
        lacking=lacking,
        intake=intake,
        mailboxes=mailboxes,
        slots=slots,
        node_id=node_id,
    )
    return App([*ROUTES, *extra_routes], context, fast=fast)
