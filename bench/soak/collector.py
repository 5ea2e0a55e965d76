"""Stands in for an OpenTelemetry collector: decodes what comes over OTLP/HTTP, counts it and forgets it.

    python -m bench.soak.collector PORT

`GET /` answers the counts as JSON. (What the tests use keeps every item in a file: too much for half an hour.)
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

__all__ = ["counted", "main"]


def counted(path: str, body: bytes) -> Counter[str]:
    """Spans by the first word of their name (call, claim, create, run), records of logs, and bytes."""
    found = Counter({"bytes": len(body), "requests": 1})
    if path == "/v1/traces":
        traces = ExportTraceServiceRequest.FromString(body)
        for resource in traces.resource_spans:
            for scope in resource.scope_spans:
                found.update(f"{span.name.split(' ')[0]} spans" for span in scope.spans)
    elif path == "/v1/logs":
        logs = ExportLogsServiceRequest.FromString(body)
        found["log records"] = sum(len(s.log_records) for r in logs.resource_logs for s in r.scope_logs)
    else:
        raise ValueError(f"nothing of OTLP is at {path}")
    return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    counts: ClassVar[Counter[str]] = Counter()
    lock = threading.Lock()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        found = counted(self.path, gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
        with self.lock:
            self.counts.update(found)
        self._answer(b"")

    def do_GET(self) -> None:
        with self.lock:
            self._answer(json.dumps(self.counts).encode())

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def main(port: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), _Handler)
    server.daemon_threads = True
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
