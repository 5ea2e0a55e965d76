"""A receiver of webhooks that answers what its path asks for: /503,200/x is 503 first and 200 from then on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Arrival", "Receiver", "receiving"]


@dataclass(frozen=True)
class Arrival:
    at: float
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    url: str
    heard: list[Arrival] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)  # what /hold waits for

    def arrivals(self, path: str) -> list[Arrival]:
        return [arrival for arrival in self.heard if arrival.path == path]


@contextmanager
def receiving() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            before = len(receiver.arrivals(self.path))
            receiver.heard.append(Arrival(time.time(), self.command, self.path, headers, body))
            wanted = self.path.split("/")[1]
            if wanted == "hold":
                receiver.release.wait(30)
            codes = wanted.split(",") if wanted[0].isdigit() else ["200"]
            self.send_response(int(codes[min(before, len(codes) - 1)]))
            if "retry-after" in self.path:
                self.send_header("Retry-After", "1")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_PUT = do_POST  # noqa: N815 - the name that http.server looks for

        def log_message(self, *_: object) -> None:
            """Not on the terminal."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Callers hang up on us on purpose."""

    server = Server(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.release.set()
        server.shutdown()
        server.server_close()
        thread.join()
