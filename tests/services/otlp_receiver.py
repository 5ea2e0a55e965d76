"""A collector: takes OTLP over HTTP in a process of its own, decodes it with OpenTelemetry's own messages and writes
what it got, one JSON object for each request.

`python otlp_receiver.py PORT FILE`: a port of 0 is a free one, which is the first line of the file. Requests to
`/busy/…` are answered 503 once each two times, those to `/wrong/…` 400, and those to `/hangs/…` never.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.services.orphan_reaper import orphan_reaper
from tests.services.waiting import until_blocking

__all__ = ["Collector", "collector"]

REQUESTS: dict[str, Callable[[], Any]] = {"traces": ExportTraceServiceRequest, "logs": ExportLogsServiceRequest}


class Collector:
    """The process, and what it got."""

    def __init__(self, file: Path, process: subprocess.Popen[bytes]) -> None:
        self._file = file
        self.process = process
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ready(self) -> None:
        until_blocking(lambda: self._file.exists() and "\n" in self._file.read_text(), "the collector listens")
        self.port = int(self._lines()[0])

    def forget(self) -> None:
        """What it got so far."""
        self._file.write_text(f"{self.port}\n")

    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._lines()[1:]]

    def spans(self) -> list[dict[str, Any]]:
        return [
            {**span, "attributes": attributes(span)}
            for request in self.requests()
            for resource in request.get("resourceSpans", [])
            for scope in resource["scopeSpans"]
            for span in scope.get("spans", [])
        ]

    def records(self) -> list[dict[str, Any]]:
        return [
            {**record, "attributes": attributes(record), "body": record["body"]["stringValue"]}
            for request in self.requests()
            for resource in request.get("resourceLogs", [])
            for scope in resource["scopeLogs"]
            for record in scope.get("logRecords", [])
        ]

    def _lines(self) -> list[str]:
        """Those that are complete."""
        return [line for line in self._file.read_text().splitlines(keepends=True) if line.endswith("\n")]


def attributes(item: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in item.get("attributes", [])}


@contextlib.contextmanager
def collector(directory: Path) -> Iterator[Collector]:
    file = directory / "collected.jsonl"
    root = Path(__file__).parents[2]
    process = subprocess.Popen([sys.executable, "-m", "tests.services.otlp_receiver", "0", str(file)], cwd=root)
    orphan_reaper.runs(process.pid, signal.SIGKILL)
    try:
        found = Collector(file, process)
        found.ready()
        yield found
    finally:
        process.kill()
        process.wait()
        orphan_reaper.ended(process.pid)


class _Handler(BaseHTTPRequestHandler):
    file: Path
    tries = 0
    lock = threading.Lock()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        place, _, signal = self.path.strip("/").rpartition("/v1/")
        status = 200
        if place == "hangs":
            threading.Event().wait()
        with self.lock:
            if place == "busy":
                _Handler.tries += 1
                status = 503 if self.tries % 2 else 200
            elif place == "wrong":
                status = 400
            if status == 200:
                message = REQUESTS[signal.removeprefix("v1/")]()
                message.ParseFromString(body)
                told = MessageToDict(message)
                told["headers"] = {name.lower(): value for name, value in self.headers.items()}
                with self.file.open("a") as out:
                    out.write(json.dumps(told) + "\n")
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def main(port: str, file: str) -> None:
    _Handler.file = Path(file)
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), _Handler)
    server.daemon_threads = True
    _Handler.file.write_text(f"{server.server_address[1]}\n")
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
