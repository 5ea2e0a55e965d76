"""Creates that came whole are answered without the framework: same guard, same handlers, same answers, less in between.

The framework and the server's ASGI machinery took two thirds of the CPU of a create over HTTP. What is left here is the
handler itself, what the edge adds to every answer, and one write. Whatever is out of the ordinary (a body that comes in
pieces, cookies, Expect, an upgrade) takes the long way; tests hold both ways to the same answers.

Of what was left, three quarters were plumbing: parsing a head that the client had sent before, a task, a dozen
coroutines. So a create under a known head, of a job that nothing need be asked about, goes straight into the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from litestar import Litestar
from litestar.response.base import ASGIResponse
from litestar.routes import HTTPRoute

from onthedot.api.auth import bearer_of, guard, may
from onthedot.api.context import Context
from onthedot.api.fastpath.buffered_request import Whole
from onthedot.api.fastpath.head_cache import Head, KnownHeads
from onthedot.api.http.client_connection import Connected
from onthedot.api.http.middleware import UNCACHED_LINES, Edge, secured_lines
from onthedot.api.http.problems import answer_problem
from onthedot.api.http.responses import Json
from onthedot.api.operations import operation_of
from onthedot.api.routes.jobs import job_created
from onthedot.api.routes.timers import timer_created
from onthedot.errors import OnTheDotError
from onthedot.model.decoding import decode_json
from onthedot.service import Service

__all__ = ["Express", "Reply", "Stop"]

UNUSUAL = frozenset((b"cookie", b"expect", b"transfer-encoding", b"upgrade"))
Headers = Sequence[tuple[bytes, bytes]]
Reply = Callable[[bytes, bytes], None]
"""Takes status line and headers, without the empty line that ends them, and the body."""

TAKEN: dict[str, tuple[Any, Any]] = {
    "/v1/jobs": (Service.take_job, job_created),
    "/timers": (Service.take_timer, timer_created),
}
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


class Stop:
    """A path that is served this way: the handler as the framework has it registered, and what it is made of."""

    __slots__ = ("access", "body", "created", "function", "handler", "path", "take")

    def __init__(self, path: str, handler: Any) -> None:
        declared = operation_of(handler)
        assert declared is not None
        self.path = path
        self.handler = handler
        self.function = handler.fn
        self.access = declared.access
        self.body = declared.body
        self.take, self.created = TAKEN[path]


class Express:
    def __init__(self, router: Litestar, edge: Edge, context: Context) -> None:
        self._router = router
        self._edge = edge
        self._service = context.service
        self.heads = KnownHeads()
        self._stops = {
            route.path_format.encode(): Stop(route.path_format, route.route_handler_map["POST"][0])
            for route in router.routes
            if isinstance(route, HTTPRoute) and route.path_format in TAKEN
        }

    def stop_of(self, method: bytes, address: bytes, headers: Headers) -> Stop | None:
        """Who answers this; None: the framework."""
        stop = self._stops.get(address)
        if stop is None or method != b"POST" or any(name in UNUSUAL for name, _ in headers):
            return None
        return stop

    async def answer(
        self, stop: Stop, headers: Headers, body: bytes, keep_alive: bool, transport: Any = None
    ) -> tuple[bytes, bytes, Head | None]:
        """Status line and headers, the body, and what to know the head by if all was well."""
        began = self._edge.clock.monotonic()
        request: Any = Whole(self._router, stop.handler, headers, body, transport)
        answer: ASGIResponse
        known = None
        try:
            await guard(request)
            answer = await stop.function(request)
            if "idempotency-key" not in request.headers:  # no two of those are the same
                known = Head(stop, len(body), bearer_of(request.headers.get("authorization")), keep_alive)
        except Exception as error:
            answer = answer_problem(error)
        return *self.written(stop, answer, began), known

    def take(self, head: Head, body: bytes, reply: Reply, transport: Any = None) -> bool:
        """True: it goes in with the next group, and then is replied to. False: nothing was done, it takes the other
        way, where whatever is wrong with it is told."""
        stop: Stop = head.stop
        principal = self._service.known_principal(head.bearer)
        if principal is None or not may(principal, stop.access):
            return False
        try:
            wanted = decode_json(body, stop.body)
        except OnTheDotError:
            return False
        ride = Ride(self, stop, reply, self._edge.clock.monotonic())
        asker = Connected(transport, self._edge.clock, principal.name)
        return bool(stop.take(self._service, principal.tenant, wanted, ride.arrived, asker))

    def written(self, stop: Stop, answer: ASGIResponse, began: float) -> tuple[bytes, bytes]:
        head = _STATUS_LINES[answer.status_code] + _lines(answer)
        self._edge.count("POST", stop.path, answer.status_code, self._edge.clock.monotonic() - began)
        return head, answer.body


def _lines(answer: ASGIResponse) -> bytes:
    if isinstance(answer, Json) and "cache-control" not in answer.given:
        return answer.lines() + UNCACHED_LINES
    return secured_lines(answer.encode_headers())


class Ride:
    """One create on its way into the store."""

    __slots__ = ("_began", "_express", "_reply", "_stop")

    def __init__(self, express: Express, stop: Stop, reply: Reply, began: float) -> None:
        self._express = express
        self._stop = stop
        self._reply = reply
        self._began = began

    def arrived(self, made: Any) -> None:
        answer = answer_problem(made) if isinstance(made, OnTheDotError) else self._stop.created(made)
        self._reply(*self._express.written(self._stop, answer, self._began))
