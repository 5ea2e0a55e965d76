"""Sends traces and logs to a collector by OTLP/HTTP, in a thread of its own.

What is told is queued and nobody waits: beyond its bounds the queue drops what is newest and counts it. A collector
that is away is tried again with backoff. The end of the node waits for the rest for a few seconds, no longer.
"""

from __future__ import annotations

import gzip
import logging
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from onthedot.telemetry.otlp.config import OtlpConfig
from onthedot.telemetry.otlp.encoding import LogLine, logs_request, trace_request
from onthedot.telemetry.tracing import AttemptTrace, CreatedTrace

__all__ = ["OtlpExporter", "OtlpLogHandler"]

MOST_QUEUED = 20_000
MOST_LOG_BYTES = 32 << 20
BATCH = 512
EVERY = 1.0
LONGEST_BACKOFF = 15.0
AGAIN = (408, 429, 500, 502, 503, 504)
Item = AttemptTrace | CreatedTrace | LogLine
Count = Callable[[str, str, int], None]  # signal, result, how many


class OtlpExporter:
    """A Tracer."""

    def __init__(
        self,
        config: OtlpConfig,
        resource: Mapping[str, str],
        *,
        count: Count = lambda signal, result, n: None,
        reached: Callable[[str | None], None] = lambda error: None,
    ) -> None:
        """`reached` is told why the collector is not reached, and with None that it is again; both from the thread."""
        self._config = config
        self._resource = {"service.name": config.service, **resource, **config.resource}
        self._count = count
        self._reached = reached
        self._queue: deque[Item] = deque()
        self._log_bytes = 0
        self._lock = threading.Condition()
        self._until: float | None = None  # once it is to end: not after this instant
        self._is_away = False
        self._tls = ssl.create_default_context(cafile=config.certificate)
        self._thread = threading.Thread(target=self._run, name="onthedot-otlp", daemon=True)
        self._thread.start()

    def job_created(self, created: CreatedTrace) -> None:
        if self._config.traces is not None:
            self._put(created, 0)

    def attempt_ended(self, attempt: AttemptTrace) -> None:
        self._put(attempt, len(attempt.log or ""))

    def logged(self, line: LogLine) -> None:
        if self._config.logs is not None:
            self._put(line, len(line.body))

    def close(self, within: float) -> bool:
        """Send what is left, for so many seconds at most. Whether all of it went out."""
        with self._lock:
            self._until = time.monotonic() + within
            self._lock.notify()
        self._thread.join(within)
        left = len(self._queue)
        if left:
            self._count("queue", "dropped", left)
        return not left and not self._thread.is_alive()

    def _put(self, item: Item, size: int) -> None:
        with self._lock:
            full = len(self._queue) >= MOST_QUEUED or self._log_bytes + size > MOST_LOG_BYTES
            if full or self._until is not None:
                self._count("queue", "dropped", 1)
                return
            self._queue.append(item)
            self._log_bytes += size
            if len(self._queue) == BATCH:
                self._lock.notify()

    def _run(self) -> None:
        while True:
            with self._lock:
                if len(self._queue) < BATCH and self._until is None:
                    self._lock.wait(EVERY)
                if not self._queue and self._until is not None:
                    return
                batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
                self._log_bytes -= sum(_size(item) for item in batch)
            if batch:
                try:
                    self._send(batch)
                except Exception as error:  # a batch that can't be written must not end the thread
                    self._count("queue", "dropped", len(batch))
                    self._tell(f"{type(error).__name__}: {error}")
            if self._is_over():
                return

    def _send(self, batch: list[Item]) -> None:
        config = self._config
        if config.traces is not None:
            traced = [item for item in batch if not isinstance(item, LogLine)]
            body, n = trace_request(self._resource, traced)
            self._post("traces", config.traces, body, n)
        if config.logs is not None:
            told = [
                item for item in batch if isinstance(item, LogLine) or (isinstance(item, AttemptTrace) and item.log)
            ]
            body, n = logs_request(self._resource, told)
            self._post("logs", config.logs, body, n)

    def _post(self, signal: str, url: str, body: bytes, n: int) -> None:
        """Again and again while the collector is away, until it is to end: the queue takes what comes meanwhile."""
        if not n:
            return
        headers = {"content-type": "application/x-protobuf", "user-agent": "onthedot", **self._config.headers}
        if self._config.gzip:
            body, headers["content-encoding"] = gzip.compress(body, 1), "gzip"
        backoff = 0.5
        while True:
            error, again = self._try(url, body, headers)
            if error is None:
                self._tell(None)
                self._count(signal, "exported", n)
                return
            self._tell(error)
            if not again or self._is_over():
                self._count(signal, "dropped", n)
                return
            with self._lock:
                self._lock.wait(backoff if self._until is None else min(backoff, 0.2))
            backoff = min(LONGEST_BACKOFF, backoff * 2)

    def _try(self, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[str | None, bool]:
        """What is wrong, and whether to try again."""
        request = urllib.request.Request(url, body, dict(headers), method="POST")  # noqa: S310 - http(s) by the config
        timeout = self._config.timeout
        if self._until is not None:
            timeout = max(0.05, min(timeout, self._until - time.monotonic()))
        try:
            with urllib.request.urlopen(request, timeout=timeout, context=self._tls) as answer:  # noqa: S310 - the same
                answer.read(1 << 16)
        except urllib.error.HTTPError as error:
            error.close()
            return f"the collector answered {error.code}", error.code in AGAIN
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            return f"the collector was not reached: {reason}", True
        return None, False

    def _tell(self, error: str | None) -> None:
        """With each change, not with each try."""
        if (error is not None) != self._is_away:
            self._is_away = error is not None
            self._reached(error)

    def _is_over(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until


class OtlpLogHandler(logging.Handler):
    """Takes the node's own log."""

    def __init__(self, exporter: OtlpExporter) -> None:
        super().__init__()
        self._exporter = exporter

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, Any] = {"logger": record.name}
        if isinstance(record.msg, dict):  # structlog's
            told = {name: value for name, value in record.msg.items() if not name.startswith("_")}
            body = str(told.pop("event", ""))
            for name in ("level", "logger", "timestamp"):
                told.pop(name, None)
            fields.update(told)
        else:
            body = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            fields["exception.type"] = record.exc_info[0].__name__
            fields["exception.message"] = str(record.exc_info[1])
        line = LogLine(at_ns=int(record.created * 1e9), level=record.levelname, body=body, fields=fields)
        self._exporter.logged(line)


def _size(item: Item) -> int:
    if isinstance(item, LogLine):
        return len(item.body)
    return len(item.log or "") if isinstance(item, AttemptTrace) else 0
