"""Writes events to the log, and configures logging."""

from __future__ import annotations

import logging
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any, TextIO

import structlog

from onthedot.telemetry.bus import Event, Telemetry
from onthedot.telemetry.plain import plain, plain_line

__all__ = ["configure_logging", "log_events", "log_failures"]

# Successful runs are DEBUG: at thousands a second, a line each would cost more than the run itself.
_LEVELS = {
    "run.refused": "warning",
    "run.lost": "warning",
    "callback.refused": "warning",
    "run.retried": "info",
    "run.detached": "info",
    "run.adopted": "info",
    "run.skipped": "info",
    "run.unroutable": "warning",
    "run.routable": "info",
    "dead.letter": "error",
    "ledger.conflict": "critical",
    "job.quarantined": "error",
    "job.parked": "warning",
    "job.silent": "critical",
    "certificate.broken": "error",
    "certificate.expires": "warning",
    "certificate.reloaded": "info",
    "destination.opened": "warning",
    "destination.closed": "info",
    "clock.set": "warning",
    "floor.repaired": "error",
    "leftover.removed": "info",
    "leftover.ended": "warning",
    "leftover.kept": "warning",
    "log.unwritten": "warning",
    "lookup.abandoned": "warning",
    "broker.connected": "info",
    "broker.unavailable": "error",
    "broker.back": "info",
    "aws.unavailable": "error",
    "workflows.unavailable": "error",
    "containers.engine": "info",
    "containers.unavailable": "error",
    "kubernetes.cluster": "info",
    "kubernetes.unavailable": "error",
    "intake.reading": "info",
    "intake.paused": "error",
    "intake.refused": "warning",
    "note.failed": "error",
    "chain.not_started": "warning",
    "incident.opened": "warning",
    "incident.closed": "info",
    "alert.failed": "error",
    "alert.watch_failed": "error",
    "login.done": "info",
    "login.refused": "warning",
    "logout": "info",
    "key.created": "warning",
    "key.revoked": "warning",
    "node.short": "warning",
    "otel.unavailable": "warning",
    "otel.back": "info",
    "commands.guard_ended": "warning",
    "commands.unguarded": "error",
    "plugin.broken": "error",
    "script.uploaded": "info",
    "script.deleted": "info",
    "scripts.sandbox": "info",
    "scripts.no_sandbox": "info",
    "scripts.left_behind": "warning",
    "node.registered": "info",
    "node.draining": "info",
    "node.left": "info",
    "node.lost": "warning",
    "node.transaction_ended": "warning",
    "witness.blind": "warning",
    "witness.unheard": "error",
    "store.refused": "error",
    "store.unavailable": "error",
    "store.back": "info",
    "store.moved": "error",
    "store.failover": "warning",
}
_QUIETER = {"uvicorn.access": logging.WARNING, "asyncio": logging.WARNING, "aiohttp.access": logging.WARNING}


def level_of(event: Event) -> str:
    if event.name == "run.finished":
        return "warning" if event.fields.get("status") == "FAILED" else "debug"
    return _LEVELS.get(event.name, "debug")


def log_events(telemetry: Telemetry) -> Callable[[], None]:
    """Log events, each at its own level. Returns a function that stops it."""
    logger = structlog.stdlib.get_logger("onthedot")
    heard = logging.getLogger("onthedot").isEnabledFor

    def write(event: Event) -> None:
        level = level_of(event)
        if level != "debug" or heard(logging.DEBUG):
            getattr(logger, level)(event.name, **event.fields)

    return telemetry.subscribe(write)


_FAILURES = {
    "run.retried": (
        logging.WARNING,
        "job %(job)s: run %(run_id)s failed (attempt %(tries)s) and will be retried: %(error)s",
    ),
    "run.finished": (logging.ERROR, "job %(job)s: run %(run_id)s failed permanently: %(error)s"),
    "run.skipped": (logging.WARNING, "job %(job)s: run %(run_id)s was not started: %(reason)s"),
    "run.lost": (logging.WARNING, "job %(job)s: the node of run %(run_id)s was lost"),
    "run.unroutable": (logging.WARNING, "%(n)s due runs require %(requires)s, which no live node provides"),
    "job.quarantined": (logging.ERROR, "job %(job)s is quarantined: %(reason)s"),
    "plugin.broken": (logging.ERROR, "plug-in %(plugin)s can't be used: %(error)s"),
    "broker.unavailable": (logging.ERROR, "broker %(broker)s unavailable: %(error)s"),
    "broker.back": (logging.INFO, "broker %(broker)s available again"),
    "store.unavailable": (logging.ERROR, "store unavailable: %(error)s"),
    "store.back": (logging.INFO, "store available again"),
}


def log_failures(telemetry: Telemetry) -> Callable[[], None]:
    """Log failures to the logger "onthedot", for programs that configure `logging` themselves. Returns a function that
    stops it."""
    logger = logging.getLogger("onthedot")

    def write(event: Event) -> None:
        level, text = _FAILURES.get(event.name, (logging.NOTSET, ""))
        if not text or (event.name == "run.finished" and event.fields.get("status") != "FAILED"):
            return
        said = {name: plain_line(value) if isinstance(value, str) else value for name, value in event.fields.items()}
        fields = defaultdict(str, said)
        fields["job"] = fields["key"] or fields["job_id"]
        logger.log(level, text, fields)

    return telemetry.subscribe(write, only_failures=True)


def _without_commands(_: Any, __: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Escape control characters: logged values may come from untrusted sources."""
    for name, value in fields.items():
        if isinstance(value, str):
            fields[name] = plain(value) if name == "exception" else plain_line(value)
        elif not isinstance(value, int | float | bool | None):
            fields[name] = plain_line(repr(value))
    return fields


def configure_logging(level: str = "INFO", *, style: str | None = None, stream: TextIO | None = None) -> None:
    """Install one handler for our own log and that of libraries. `style` is "console" or "json"; None: text on a
    terminal, JSON otherwise."""
    stream = stream or sys.stderr
    as_json = not stream.isatty() if style is None else style == "json"
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    # plain tracebacks: the pretty ones print local variables, which may include API keys
    console = structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback)
    renderer: Any = structlog.processors.JSONRenderer() if as_json else console
    tail: list[Any] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
    ]
    if not as_json:  # JSON escapes control characters anyway
        tail.append(_without_commands)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[*tail, renderer]))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name, floor in _QUIETER.items():
        logging.getLogger(name).setLevel(max(floor, root.level))
