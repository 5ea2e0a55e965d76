"""Creates that came in one piece are answered without the framework.

The framework and the server's ASGI machinery took two thirds of the CPU of a create over HTTP. What is left here is the
handler itself, the headers that the middleware adds to every response, and one write. Whatever is out of the ordinary
(a body that comes in pieces, cookies, Expect, an upgrade) takes the ordinary way; tests hold both to the same answers.

Of what was left, three quarters were plumbing: parsing a head that the client had sent before, a task, a dozen
coroutines. So a create under a known head, of a job that nothing need be asked about, goes straight into the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from onthedot.api.auth import bearer_of, guard, may
from onthedot.api.fastpath.buffered_request import BufferedRequest
from onthedot.api.fastpath.head_cache import Head, HeadCache, Known
from onthedot.api.http.client_connection import Connected
from onthedot.api.http.middleware import HttpMiddleware, secured_lines
from onthedot.api.http.problems import answer_problem
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import Endpoint
from onthedot.api.routes.jobs import job_created
from onthedot.api.routes.timers import timer_created
from onthedot.errors import OnTheDotError
from onthedot.model.decoding import decode_json
from onthedot.service import Repeat, Service

__all__ = ["FastPath", "FastRoute", "Reply"]

UNUSUAL = frozenset((b"cookie", b"expect", b"transfer-encoding", b"upgrade"))
Headers = Sequence[tuple[bytes, bytes]]
Reply = Callable[[bytes, bytes], None]
"""Takes status line and headers, without the empty line that ends them, and the body."""

TAKEN: dict[str, tuple[Any, Any]] = {
    "/v1/jobs": (Service.take_job, job_created),
    "/timers": (Service.take_timer, timer_created),
}
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


class FastRoute:
    """A path that is served this way: its endpoint, and what that is made of."""

    __slots__ = ("created", "function", "operation", "path", "take")

    def __init__(self, endpoint: Endpoint) -> None:
        self.path = endpoint.operation.path
        self.operation = endpoint.operation
        self.function: Any = endpoint.function
        self.take, self.created = TAKEN[self.path]


class FastPath:
    def __init__(self, app: Any, endpoints: Sequence[Endpoint], middleware: HttpMiddleware, service: Service) -> None:
        self._app = app
        self._middleware = middleware
        self._service = service
        self.heads = HeadCache()
        self._routes = {
            each.operation.path.encode(): FastRoute(each)
            for each in endpoints
            if each.operation.method == "POST" and each.operation.path in TAKEN
        }

    def route_of(self, method: bytes, address: bytes, headers: Headers) -> FastRoute | None:
        """Who answers this; None: the framework."""
        route = self._routes.get(address)
        if route is None or method != b"POST" or any(name in UNUSUAL for name, _ in headers):
            return None
        return route

    async def answer(
        self, route: FastRoute, headers: Headers, body: bytes, keep_alive: bool, transport: Any = None
    ) -> tuple[bytes, bytes, Head | None]:
        """Status line and headers, the body, and what to know the head by if all was well."""
        began = self._middleware.clock.monotonic()
        request: Any = BufferedRequest(self._app, route.operation, headers, body, transport)
        response: HttpResponse
        known = None
        try:
            await guard(request)
            response = await route.function(request)
            known = Head(route, bearer_of(request.headers.get("authorization")), keep_alive)
        except Exception as error:
            response = answer_problem(error)
        return *self.written(route, response, began), known

    def take(self, known: Known, reply: Reply, transport: Any = None) -> bool:
        """True: it goes in with the next batch, and then is replied to. False: nothing was done, it takes the other
        way, where whatever is wrong with it is told."""
        route: FastRoute = known.head.route
        principal = self._service.known_principal(known.head.bearer)
        if principal is None or not may(principal, route.operation.access):
            return False
        try:
            wanted = decode_json(known.body, route.operation.body)
        except OnTheDotError:
            return False
        pending = PendingReply(self, route, reply, self._middleware.clock.monotonic())
        asker = Connected(transport, self._middleware.clock, principal.name)
        repeat = None if known.idempotency_key is None else Repeat(known.idempotency_key, known.body)
        return bool(route.take(self._service, principal.tenant, wanted, pending.arrived, asker, repeat))

    def written(self, route: FastRoute, response: HttpResponse, began: float) -> tuple[bytes, bytes]:
        if (root := self._service.settings.root_path) and "location" in response.headers:
            response.headers["location"] = root + response.headers["location"]
        head = _STATUS_LINES[response.status] + secured_lines(response)
        self._middleware.count("POST", route.path, response.status, self._middleware.clock.monotonic() - began)
        return head, response.body


class PendingReply:
    """One create on its way into the store."""

    __slots__ = ("_began", "_fastpath", "_reply", "_route")

    def __init__(self, fastpath: FastPath, route: FastRoute, reply: Reply, began: float) -> None:
        self._fastpath = fastpath
        self._route = route
        self._reply = reply
        self._began = began

    def arrived(self, made: Any) -> None:
        response = answer_problem(made) if isinstance(made, OnTheDotError) else self._route.created(made)
        self._reply(*self._fastpath.written(self._route, response, self._began))
