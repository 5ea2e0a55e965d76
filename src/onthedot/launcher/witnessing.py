"""Runs a witness until it is stopped: signals, its log, and the port that serves /healthz and /metrics."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from onthedot.api.http.responses import HttpResponse
from onthedot.api.monitoring import MonitoringApp
from onthedot.clock import SystemClock
from onthedot.launcher.serving import Stopping, listening, served
from onthedot.model.decoding import encode_json
from onthedot.settings import Settings
from onthedot.telemetry import telemetry
from onthedot.telemetry.log import configure_logging, log_events
from onthedot.witness.metrics import CONTENT_TYPE
from onthedot.witness.process import Witness, WitnessOrder

if TYPE_CHECKING:
    from onthedot.channels.channel import Channel
    from onthedot.witness.watching import WitnessMessage

__all__ = ["monitoring_of_witness", "run_witness"]


def monitoring_of_witness(witness: Witness) -> MonitoringApp:
    async def health() -> HttpResponse:
        found = witness.health()
        return HttpResponse(encode_json(found), 200 if found.status == "ok" else 503)

    async def metrics() -> HttpResponse:
        return HttpResponse(witness.metrics.text(), media=CONTENT_TYPE)

    return MonitoringApp({"/healthz": health, "/metrics": metrics})


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
            async with served(monitoring_of_witness(witness), listener, stopping, lifespan="off") as server:
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
