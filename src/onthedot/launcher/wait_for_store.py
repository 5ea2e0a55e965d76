"""Waits for a database that is unavailable at startup: after a power failure machines come up in any order.

Meanwhile the API responds: alive, not ready, retry later. Errors that waiting can't fix (wrong password, no such
database, a schema newer than this version) end the startup with a message instead.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from typing import Any

import msgspec
import structlog

from onthedot.clock import Clock, SystemClock
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.waiting import at_most
from onthedot.errors import StoreUnavailable
from onthedot.jobsfile import JobsFile
from onthedot.main import Prepared, prepare
from onthedot.settings import Settings
from onthedot.version import __version__

__all__ = ["prepared_when_there", "waiting_app"]

SAID_EVERY = 5.0
_log = structlog.stdlib.get_logger("onthedot.start")


async def prepared_when_there(
    settings: Settings,
    jobs: JobsFile | None,
    *,
    stop: asyncio.Event,
    listener: socket.socket | None = None,
    watched: socket.socket | None = None,
    clock: Clock | None = None,
) -> Prepared | None:
    """`watched` listens on METRICS_PORT. The prepared node; None if stopped before the store was available."""
    from onthedot.api.monitoring import monitoring_of_waiting_node

    clock = clock or SystemClock()
    backoff = Backoff(random.Random(), first=0.2)
    said = -SAID_EVERY
    async with AsyncExitStack() as stack:
        while not stop.is_set():
            try:
                return await _unless(stop, settings, jobs, clock)
            except StoreUnavailable as error:
                if said == -SAID_EVERY and listener is not None:
                    app = partial(waiting_app, root=settings.root_path)
                    await stack.enter_async_context(answering(listener, settings, app))
                if said == -SAID_EVERY and watched is not None:
                    without_tls = msgspec.structs.replace(settings, tls_cert=None, tls_key=None)
                    await stack.enter_async_context(answering(watched, without_tls, monitoring_of_waiting_node()))
                if clock.monotonic() - said >= SAID_EVERY:
                    said = clock.monotonic()
                    _log.warning("store unavailable; waiting for it", error=str(error))
            await at_most(clock, backoff.delay(), stop.wait())
    return None


async def _unless(stop: asyncio.Event, settings: Settings, jobs: JobsFile | None, clock: Clock) -> Prepared | None:
    """An unanswered connection takes seconds to fail; a signal must not wait for it."""
    preparing = asyncio.ensure_future(prepare(settings, jobs, clock))
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait([preparing, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if preparing.done():
        return preparing.result()
    preparing.cancel()
    await asyncio.wait([preparing])
    if not preparing.cancelled() and preparing.exception() is None:
        await preparing.result().close()
    return None


@asynccontextmanager
async def answering(listener: socket.socket, settings: Settings, app: Any) -> AsyncIterator[None]:
    """A temporary server on the same socket; connections made during the handover wait in the socket's backlog."""
    from onthedot.api.server.certificate import server_certificate
    from onthedot.api.server.server import make_server

    certificate = server_certificate(settings.tls_cert, settings.tls_key)
    server = make_server(app, grace_seconds=1, lifespan="off", certificate=certificate)
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]  # signals are ours
    task = asyncio.create_task(server.serve(sockets=[listener.dup()]), name="launcher.waiting")
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.wait([task])
        task.result()


async def waiting_app(scope: Any, receive: Callable[..., Any], send: Callable[..., Any], *, root: str = "") -> None:
    """/healthz: alive. /readyz: not ready. Browsers get a page that reloads itself, others 503 and Retry-After."""
    from onthedot.api.http.problems import PROBLEM_MEDIA, problem_of
    from onthedot.api.routes.health import WAITING, Alive
    from onthedot.web.problem_page import waiting_page
    from onthedot.web.static import media_by_name, read_static

    status, kind, body, more = 503, "application/json", b"", {"retry-after": "1"}
    path = scope["path"].removeprefix(root)
    accepts = dict(scope.get("headers", ())).get(b"accept", b"")
    if path == "/healthz":
        status, more, body = 200, {}, msgspec.json.encode(Alive(status="ok", version=__version__))
    elif path == "/readyz":
        body = msgspec.json.encode(WAITING)
    elif (name := path.removeprefix("/static/")) in media_by_name():
        status, more, kind, body = 200, {}, media_by_name()[name], read_static(name)
    else:
        problem, more = problem_of(
            StoreUnavailable("the node is waiting for its database and will start when it is available")
        )
        kind, body = PROBLEM_MEDIA, msgspec.json.encode(problem)
        if path in ("", "/") or (b"text/html" in accepts and not path.startswith("/v1")):
            kind, body = "text/html; charset=utf-8", waiting_page(problem, root).encode()
    headers = {"content-type": kind, "content-length": str(len(body)), "cache-control": "no-store", **more}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
