"""Traces and logs by OpenTelemetry's protocol (OTLP), when OTEL_EXPORTER_OTLP_ENDPOINT says where to.

Needs the extra `otel`. Nothing of it is imported, and nothing is built for it, when that variable is not set.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from onthedot.errors import SettingsError
from onthedot.telemetry.bus import Telemetry
from onthedot.telemetry.otlp.config import WrongOtlpVariable, read_config
from onthedot.version import __version__

__all__ = ["exporting"]

CLOSE_WITHIN = 3.0
"""Seconds that the end of a node waits for a collector."""


@asynccontextmanager
async def exporting(
    telemetry: Telemetry,
    environ: Mapping[str, str],
    *,
    node: str,
    host: str,
    count: Callable[[str, str, int], None],
) -> AsyncIterator[None]:
    """Export what the bus is told, as the environment says; do nothing if it says nothing."""
    try:
        config = read_config(environ)
    except WrongOtlpVariable as wrong:
        raise SettingsError(str(wrong)) from None
    if config is None:
        yield
        return
    try:
        from onthedot.telemetry.otlp.exporter import OtlpExporter, OtlpLogHandler
    except ImportError:
        logging.getLogger("onthedot.otel").warning(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but nothing is exported: pip install 'onthedot[otel]'"
        )
        yield
        return

    def reached(error: str | None) -> None:
        telemetry.emit("otel.back" if error is None else "otel.unavailable", error=error)

    resource = {"service.version": __version__, "service.instance.id": node, "host.name": host}
    exporter = OtlpExporter(config, resource, count=count, reached=reached)
    untrace, handler = telemetry.trace(exporter), OtlpLogHandler(exporter)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        untrace()
        await asyncio.to_thread(exporter.close, CLOSE_WITHIN)
