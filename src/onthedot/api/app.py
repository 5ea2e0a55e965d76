"""The application: all routes, one guard, one way to say what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from litestar import Litestar, Response
from litestar.datastructures import State
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from litestar.types import Receive, Scope, Send

import onthedot
from onthedot.api.auth import guard
from onthedot.api.context import Context
from onthedot.api.fastpath.creates import Express
from onthedot.api.http.middleware import Edge
from onthedot.api.http.problems import PROBLEM_MEDIA, problem_of
from onthedot.api.http.sse import EventStreams
from onthedot.api.openapi.document import openapi_document
from onthedot.api.operations import Operation, Req, operation_of
from onthedot.api.routes import (
    batch,
    dead_letters,
    docs,
    events,
    health,
    job_verbs,
    jobs,
    keys,
    metrics,
    nodes,
    preview,
    runs,
    sync,
    timers,
)
from onthedot.clock import Clock, SystemClock
from onthedot.model.decoding import encode_json
from onthedot.service import Service
from onthedot.telemetry import Telemetry, telemetry
from onthedot.telemetry.metrics import Metrics

__all__ = ["App", "UndeclaredRoute", "check_declared", "create_app"]

ROUTES: tuple[HTTPRouteHandler, ...] = (
    *timers.routes,
    *jobs.routes,
    *job_verbs.routes,
    *batch.routes,
    *sync.routes,
    *runs.routes,
    *dead_letters.routes,
    *preview.routes,
    *nodes.routes,
    *events.routes,
    *keys.routes,
    *health.routes,
    *metrics.routes,
    *docs.routes,
)


class UndeclaredRoute(Exception):
    """A route does not say who may call it. The app is not built: forgetting this must not open a door."""


class App:
    """The ASGI application: the router inside, the edge around it."""

    def __init__(self, router: Litestar, context: Context) -> None:
        self.router = router
        self.context = context
        self.operations = check_declared(router)
        router.state["allowed"] = {path: ", ".join(sorted(methods)) for path, methods in _methods(router).items()}
        router.state["openapi"] = lambda: self.openapi
        self._edge = Edge(router, context.metrics, context.clock, context.bodies)
        self.express: Express | None = Express(router, self._edge, context)  # None: everything takes the long way

    @cached_property
    def openapi(self) -> dict[str, Any]:
        """Made when somebody asks: a node's start does not wait for it."""
        return openapi_document(self.operations, self.context.version)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._edge(scope, receive, send)

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
    extra_routes: Sequence[HTTPRouteHandler] = (),
) -> App:
    """`ready` says why this node's engine is not ready (None: it is), `lacking` what it is short of.
    `extra_routes`: the pages, declared like ours."""
    clock = clock or SystemClock()
    context = Context(
        service=service,
        streams=EventStreams(events or telemetry, clock),
        metrics=metrics or Metrics(),
        clock=clock,
        ready=ready,
        lacking=lacking,
        version=onthedot.__version__,
    )
    router = Litestar(
        route_handlers=[*ROUTES, *extra_routes],
        before_request=guard,
        exception_handlers={Exception: _answer_exception},
        state=State({"context": context}),
        openapi_config=None,
        logging_config=None,
        debug=False,
    )
    return App(router, context)


def check_declared(router: Litestar) -> tuple[Operation, ...]:
    """Walk all routes; UndeclaredRoute if one does not say who may call it."""
    found: list[Operation] = []
    for route in router.routes:
        if not isinstance(route, HTTPRoute):
            raise UndeclaredRoute(f"{route.path}: only HTTP routes are known to the guard")
        for method, (handler, _) in route.route_handler_map.items():
            declared = operation_of(handler)
            if handler.resolve_before_request() is not guard:
                raise UndeclaredRoute(f"{method} {route.path} has a before_request of its own: the guard is shut out")
            if declared is not None:
                found.append(declared)
            elif method != "OPTIONS":
                raise UndeclaredRoute(f"{method} {route.path} names no scope and is not declared public")
    return tuple(found)


def _methods(router: Litestar) -> dict[str, set[str]]:
    return {
        route.path_format: {str(method) for method in route.route_handler_map} - {"OPTIONS"}
        for route in router.routes
        if isinstance(route, HTTPRoute)
    }


def _answer_exception(request: Req, error: Exception) -> Response[bytes]:
    problem, headers = problem_of(error)
    handler: Any = request.scope.get("route_handler")  # none where the router itself refuses
    declared = operation_of(handler) if handler is not None else None
    if declared is not None and declared.problem_page is not None and problem.status >= 400:
        page = declared.problem_page(problem).encode()
        return Response(page, status_code=problem.status, media_type="text/html", headers=headers)
    return Response(encode_json(problem), status_code=problem.status, media_type=PROBLEM_MEDIA, headers=headers)
