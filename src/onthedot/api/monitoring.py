"""What METRICS_PORT serves: /healthz, /readyz and /metrics, and nothing else.

For probes and Prometheus, which have no key: what is told here are numbers and states, no job, no run, no address.
Nodes of every role can have it; one that only executes runs has no other port.
"""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from onthedot.api.context import NodeReport
from onthedot.api.http.problems import PROBLEM_MEDIA, problem_of
from onthedot.api.http.responses import HttpResponse
from onthedot.api.routes.health import read_health, read_readiness
from onthedot.api.routes.metrics import read_metrics
from onthedot.errors import NotFound
from onthedot.model.decoding import encode_json

__all__ = ["MonitoringApp"]

PATHS = ("/healthz", "/readyz", "/metrics")


class MonitoringApp:
    """An ASGI application."""

    def __init__(self, report: NodeReport) -> None:
        self._report = report

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        response = await self._answer(scope["method"], scope["path"])
        response.headers["cache-control"] = "no-store"
        if scope["method"] == "HEAD":
            response.body = b""
        await response(scope, receive, send)

    async def _answer(self, method: str, path: str) -> HttpResponse:
        if path in PATHS and method not in ("GET", "HEAD"):
            return HttpResponse(b"", 405, {"allow": "GET, HEAD"}, "text/plain")
        if path == "/healthz":
            return read_health(self._report)
        if path == "/readyz":
            return await read_readiness(self._report)
        if path == "/metrics":
            return await read_metrics(self._report)
        problem, headers = problem_of(NotFound(f"this port serves {', '.join(PATHS)}"))
        return HttpResponse(encode_json(problem), problem.status, headers, PROBLEM_MEDIA)
