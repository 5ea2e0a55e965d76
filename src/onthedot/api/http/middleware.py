"""The outermost layer: every response passes here, including 404 and 405 of the router.

Adds the security headers, answers HEAD like GET without the body, counts requests, and turns uncaught exceptions into
problem documents.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from onthedot.api.http.behind_proxy import BehindProxy
from onthedot.api.http.problems import answer_problem
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import OPERATION, Operation
from onthedot.api.server.limits import Bodies
from onthedot.clock import Clock
from onthedot.telemetry.metrics import Metrics

__all__ = ["CONTENT_SECURITY_POLICY", "HttpMiddleware", "header_lines", "secured_lines", "with_security"]

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
SECURITY_HEADERS: list[tuple[bytes, bytes]] = [
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with no-referrer browsers send our own forms with "Origin: null"
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
UNCACHED = [(b"cache-control", b"no-store"), *SECURITY_HEADERS]
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class HttpMiddleware:
    def __init__(
        self, app: ASGIApp, metrics: Metrics, clock: Clock, bodies: Bodies, proxy: BehindProxy | None = None
    ) -> None:
        self.app = app
        self._proxy = proxy if proxy is not None and proxy.used else None
        self._bodies = bodies
        self.clock = clock
        self._requests = metrics.requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = str(scope["type"])
        if kind == "http":
            await self._answer(dict(scope), receive, send)
        elif kind == "lifespan":
            await self.app(scope, receive, send)
        else:  # a websocket, of which there are none
            await send({"type": "websocket.close", "code": 1000, "reason": None})

    async def _answer(self, scope: Any, receive: Receive, send: Send) -> None:
        began = self.clock.monotonic()
        method, status, proxy = scope["method"], 0, self._proxy
        if proxy is not None:
            proxy.rewrite(scope)
        head = method == "HEAD"
        if head:
            scope["method"] = "GET"

        async def send_on(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = message["headers"] if proxy is None else proxy.rooted(message["headers"])
                message = {**message, "headers": with_security(headers)}
            elif head:
                message = {**message, "body": b""}
            await send(message)

        try:
            await self.app(scope, receive, send_on)
        except Exception as error:
            if status:  # too late to say anything; the server closes the connection
                raise
            await answer_problem(error)(scope, receive, send_on)
        finally:
            if "large_body" in scope:
                self._bodies.done(*scope["large_body"])
            declared: Operation | None = scope.get(OPERATION)
            route = "unmatched" if declared is None else declared.path
            self.count(method, route, status, self.clock.monotonic() - began)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        known = method if method in METHODS else "other"
        self._requests.count(known, route, status)
        if route != "/v1/events":  # how long somebody listens is not how long an answer takes
            self._requests.time(known, route, seconds)


def with_security(headers: Any) -> list[tuple[bytes, bytes]]:
    given = list(headers)
    for name, _ in given:
        if name == b"cache-control":
            return given + SECURITY_HEADERS
    return given + UNCACHED


def header_lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join([b"%s: %s\r\n" % line for line in headers])


_SECURITY_LINES = header_lines(SECURITY_HEADERS)
_UNCACHED_LINES = header_lines(UNCACHED)


def secured_lines(response: HttpResponse) -> bytes:
    """The headers of a response with those that are added to every one, as they are written."""
    return response.header_lines() + (_SECURITY_LINES if "cache-control" in response.headers else _UNCACHED_LINES)
