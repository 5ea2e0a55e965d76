"""uvicorn, with what it lacks against clients that mean harm: a limit on headers and a deadline for sending them."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from onthedot.api.app import App

__all__ = ["HEADER_BYTES", "GuardedProtocol", "Server", "make_server"]

HEADER_BYTES = 64 * 1024
HEADER_SECONDS = 15.0
_TOO_MUCH = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/problem+json\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%s"
)
_PROBLEM = (
    b'{"type":"urn:onthedot:problem:headers-too-large","title":"Request Header Fields Too Large","status":431,'
    b'"detail":"the request line and headers are over 64 KiB"}'
)


class GuardedProtocol(HttpToolsProtocol):
    """One connection. The parser itself would collect headers for ever, and wait for them for ever."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False  # requests are counted, not written
        self._in_headers = True
        self._header_bytes = 0
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_headers:
            self._header_bytes += len(data)
            if self._patience is None:
                self._await_headers()
        super().data_received(data)
        if self._in_headers and self._header_bytes > HEADER_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_MUCH % (len(_PROBLEM), _PROBLEM))
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_headers = True  # of the next request; keep-alive has its own deadline until that begins
        self._header_bytes = 0

    def send_400_response(self, msg: str) -> None:
        body = (
            b'{"type":"urn:onthedot:problem:bad-request","title":"Bad Request","status":400,"detail":"not valid HTTP"}'
        )
        head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\n"
        self.transport.write(head + b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body))
        self.transport.close()

    def _await_headers(self) -> None:
        self._patience = self.loop.call_later(HEADER_SECONDS, self.timeout_keep_alive_handler)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


class Server(uvicorn.Server):
    """Ends the event streams before it waits for connections to end: they would not by themselves."""

    def __init__(self, config: uvicorn.Config, app: App) -> None:
        super().__init__(config)
        self._application = app

    async def shutdown(self, sockets: Any = None) -> None:
        self._application.close_streams()
        await super().shutdown(sockets)


def make_server(app: App, host: str, port: int, *, grace_seconds: int = 5) -> Server:
    """A server for `await server.serve()`; signals are the caller's business if it runs inside something bigger."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=GuardedProtocol,
        ws="none",
        loop="uvloop",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=grace_seconds,
        backlog=2048,
    )
    return Server(config, app)
