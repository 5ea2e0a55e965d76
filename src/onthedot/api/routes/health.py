"""Liveness and readiness, for load balancers and supervisors."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.context import NodeReport, context_of
from onthedot.api.http import responses
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation

__all__ = ["WAITING", "Alive", "Ready", "read_health", "read_readiness", "routes"]

ANSWER_SECONDS = 2.0


class Alive(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    version: str


class Ready(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`status` is "ready" or "not ready"; `store` and `engine` are "ok" or say what is wrong.

    Three warnings do not affect readiness: `lacking`, a resource that the machine has run out of (descriptors, memory,
    ports, processes), so that this node runs fewer jobs; `clock`, a recent problem of the database's clock; `intake`,
    for each intake of this node "ok" or why its messages are not carried out at present.
    """

    status: str
    store: str
    engine: str
    lacking: str | None = None
    clock: str | None = None
    intake: dict[str, str] = msgspec.field(default_factory=dict)


WAITING = Ready(status="not ready", store="can't be reached", engine="not started")
"""Of a node that has not reached its database since its start."""


@operation("GET", "/healthz", "public", group="Operations", answers={200: Alive})
async def healthz(request: Request) -> HttpResponse:
    """Check liveness.

    Does not check the database: an outage of the database is no reason to restart the node.
    """
    return read_health(context_of(request))


def read_health(report: NodeReport) -> HttpResponse:
    return responses.json(Alive(status="ok", version=report.version))


@operation("GET", "/readyz", "public", group="Operations", answers={200: Ready, 503: Ready})
async def readyz(request: Request) -> HttpResponse:
    """Check readiness.

    Checks the database and the engine of this node.
    """
    return await read_readiness(context_of(request))


async def read_readiness(context: NodeReport) -> HttpResponse:
    clock = None
    try:
        async with context.clock.timeout(ANSWER_SECONDS):
            found = await context.service.health()
            away = "the database file was removed or replaced" if found.moved else "can't be reached"
            store, clock = "ok" if found.ok else away, found.clock
    except TimeoutError:
        store = f"no response within {ANSWER_SECONDS:.0f} s"
    engine = context.ready() or "ok"
    ready = store == engine == "ok"
    status = "ready" if ready else "not ready"
    body = Ready(
        status=status,
        store=store,
        engine=engine,
        lacking=context.lacking(),
        clock=clock,
        intake=context.intake(),
    )
    return responses.json(body, 200 if ready else 503, None if ready else {"retry-after": "1"})


routes = [healthz, readyz]
