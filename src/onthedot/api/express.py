"""Creates that came whole are answered without the framework: same guard, same handlers, same answers, less in between.

The framework and the server's ASGI machinery took two thirds of the CPU of a create over HTTP. What is left here is the
handler itself, what the edge adds to every answer, and one write. Whatever is out of the ordinary (a body that comes in
pieces, cookies, Expect, an upgrade) takes the long way; tests hold both ways to the same answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from litestar import Litestar
from litestar.response.base import ASGIResponse
from litestar.routes import HTTPRoute

from onthedot.api.auth import guard
from onthedot.api.edge import Edge, secured_lines
from onthedot.api.problems import answer_problem
from onthedot.api.whole import Whole

__all__ = ["Express", "Stop"]

PATHS = ("/v1/jobs", "/timers")
UNUSUAL = frozenset((b"cookie", b"expect", b"transfer-encoding", b"upgrade"))
Headers = Sequence[tuple[bytes, bytes]]
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


class Stop:
    """A path that is served this way: the handler as the framework has it registered, and its function."""

    __slots__ = ("function", "handler", "path")

    def __init__(self, path: str, handler: Any) -> None:
        self.path = path
        self.handler = handler
        self.function = handler.fn


class Express:
    def __init__(self, router: Litestar, edge: Edge) -> None:
        self._router = router
        self._edge = edge
        self._stops = {
            route.path_format.encode(): Stop(route.path_format, route.route_handler_map["POST"][0])
            for route in router.routes
            if isinstance(route, HTTPRoute) and route.path_format in PATHS
        }

    def stop_of(self, method: bytes, address: bytes, headers: Headers) -> Stop | None:
        """Who answers this; None: the framework."""
        stop = self._stops.get(address)
        if stop is None or method != b"POST" or any(name in UNUSUAL for name, _ in headers):
            return None
        return stop

    async def answer(self, stop: Stop, headers: Headers, body: bytes) -> tuple[bytes, bytes]:
        """Status line and headers without the empty line that ends them, and the body."""
        began = self._edge.clock.monotonic()
        request: Any = Whole(self._router, stop.handler, headers, body)
        answer: ASGIResponse
        try:
            await guard(request)
            answer = await stop.function(request)
        except Exception as error:
            answer = answer_problem(error)
        head = _STATUS_LINES[answer.status_code] + secured_lines(answer.encode_headers())
        self._edge.count("POST", stop.path, answer.status_code, self._edge.clock.monotonic() - began)
        return head, answer.body
