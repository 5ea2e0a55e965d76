"""Runs a witness until it is stopped: signals, its log, and the port that serves /healthz and /metrics."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from onthedot.clock import SystemClock
from onthedot.launcher.serving import Stopping, listening, served
from onthedot.model.decoding import encode_json
from onthedot.settings import Settings
from onthedot.telemetry import telemetry
from onthedot.telemetry.log import configure_logging, log_events
from onthedot.witness.metrics import CONTENT_TYPE
from onthedot.witness.process import Witness, WitnessOrder

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from onthedot.channels.channel import Channel
    from onthedot.witness.watching import WitnessMessage

__all__ = ["WitnessApp", "run_witness"]

PATHS = ("/healthz", "/metrics")


class WitnessApp:
    """An ASGI application: what --port serves. No key is asked for: it tells numbers and states only."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, media, body = self._answer(scope["method"], scope["path"])
        headers = [(b"content-type", media.encode()), (b"cache-control", b"no-store")]
        if status == 405:
            headers.append((b"allow", b"GET, HEAD"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _answer(self, method: str, path: str) -> tuple[int, str, bytes]:
        if path not in PATHS:
            return 404, "text/plain", f"this port serves {' and '.join(PATHS)}\n".encode()
        if method not in ("GET", "HEAD"):
            return 405, "text/plain", b""
        if path == "/metrics":
            return 200, CONTENT_TYPE, self._witness.metrics.text()
        health = self._witness.health()
        return 200 if health.status == "ok" else 503, "application/json", encode_json(health)


async def run_witness(
    settings: Settings,
    order: WitnessOrder,
    channels: Sequence[Channel],
    tell: Callable[[WitnessMessage], None],
    *,
    listen: tuple[str, int] | None,
) -> None:
    """Until SIGTERM or SIGINT. `listen`: host and port."""
    configure_logging(settings.log_level, style=settings.log_format)
    for name, level in (("uvicorn.error", logging.WARNING), ("asyncpg.pool", logging.ERROR)):
        logging.getLogger(name).setLevel(level)
    stop_logging = log_events(telemetry)
    witness, stopping = Witness(order, channels, SystemClock(), tell), Stopping()
    listener = None if listen is None else listening(*listen)
    try:
        if listener is not None:
            host, port = listener.getsockname()[:2]
            sys.stderr.write(f"Witness: /healthz and /metrics on http://{host}:{port}\n")
        with stopping.on_signals():
            async with served(WitnessApp(witness), listener, stopping, lifespan="off") as server:
                watching = asyncio.create_task(witness.run(), name="launcher.witness")
                asked = asyncio.create_task(stopping.asked.wait(), name="launcher.asked")
                parts = [task for task in (watching, asked, server) if task is not None]
                await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
                for task in (watching, asked):
                    task.cancel()
                await asyncio.wait([watching, asked])
                if not watching.cancelled():
                    watching.result()
    finally:
        stop_logging()
        if listener is not None:
            listener.close()
