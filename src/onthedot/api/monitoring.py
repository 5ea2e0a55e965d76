"""A port for probes and Prometheus, which have no key: METRICS_PORT of a node, `--port` of a witness.

What is told there are numbers and states, no job, no run, no address. Nodes of every role can have it; one that only
executes runs has no other port.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.types import Receive, Scope, Send

from onthedot.api.context import NodeReport
from onthedot.api.http import responses
from onthedot.api.http.problems import PROBLEM_MEDIA, problem_of
from onthedot.api.http.responses import HttpResponse
from onthedot.api.routes.health import WAITING, Alive, read_health, read_readiness
from onthedot.api.routes.metrics import read_metrics
from onthedot.errors import NotFound
from onthedot.model.decoding import encode_json
from onthedot.telemetry.metrics import CONTENT_TYPE, Metrics
from onthedot.version import __version__

__all__ = ["MonitoringApp", "monitoring_of_node", "monitoring_of_waiting_node"]

Answer = Callable[[], Awaitable[HttpResponse]]


class MonitoringApp:
    """An ASGI application: these paths and nothing else."""

    def __init__(self, paths: Mapping[str, Answer]) -> None:
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        response = await self._answer(scope["method"], scope["path"])
        response.headers["cache-control"] = "no-store"
        if scope["method"] == "HEAD":
            response.body = b""
        await response(scope, receive, send)

    async def _answer(self, method: str, path: str) -> HttpResponse:
        answer = self._paths.get(path)
        if answer is None:
            problem, headers = problem_of(NotFound(f"this port serves {', '.join(self._paths)}"))
            return HttpResponse(encode_json(problem), problem.status, headers, PROBLEM_MEDIA)
        if method not in ("GET", "HEAD"):
            return HttpResponse(b"", 405, {"allow": "GET, HEAD"}, "text/plain")
        return await answer()


def monitoring_of_node(report: NodeReport) -> MonitoringApp:
    async def health() -> HttpResponse:
        return read_health(report)

    async def readiness() -> HttpResponse:
        return await read_readiness(report)

    async def metrics() -> HttpResponse:
        return await read_metrics(report)

    return MonitoringApp({"/healthz": health, "/readyz": readiness, "/metrics": metrics})


def monitoring_of_waiting_node() -> MonitoringApp:
    """Of a node that waits for its database at its start: whoever watches it must be able to tell that from a node that
    is not there."""
    figures = Metrics()
    figures.ready.set(0)
    figures.store_up.set(0)

    async def health() -> HttpResponse:
        return responses.json(Alive(status="ok", version=__version__))

    async def readiness() -> HttpResponse:
        return responses.json(WAITING, 503, {"retry-after": "1"})

    async def metrics() -> HttpResponse:
        return responses.plain(figures.text(), CONTENT_TYPE)

    return MonitoringApp({"/healthz": health, "/readyz": readiness, "/metrics": metrics})
