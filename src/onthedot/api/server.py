"""uvicorn, with what it lacks against clients that mean harm: a limit on headers and a deadline for sending them."""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from onthedot.api.app import App
from onthedot.api.asker import TRANSPORT
from onthedot.api.edge import header_lines
from onthedot.api.express import Express, Stop

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


class Passage:
    """What uvicorn asks of a request that is being answered, for one that goes express."""

    __slots__ = ("disconnected", "keep_alive", "message_event", "response_complete")

    def __init__(self, keep_alive: bool) -> None:
        self.keep_alive = keep_alive
        self.disconnected = False
        self.response_complete = False
        self.message_event = _NOBODY_WAITS


_NOBODY_WAITS = asyncio.Event()


class GuardedProtocol(HttpToolsProtocol):
    """One connection. The parser itself would collect headers for ever, and wait for them for ever.

    Requests that the app serves by `express` and that came in one read are answered here, in one write: uvicorn's way,
    with a scope, a cycle and four messages, took 65 to 88 µs of CPU for a request that does nothing; this takes 12. One
    whose head is known need not even be parsed.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False  # requests are counted, not written
        self._express: Express | None = getattr(self.app, "express", None)
        self._stop: Stop | None = None
        self._parts: list[bytes] = []
        self._data = b""  # what is being received, if a request begins with it
        self._answered_at = -math.inf
        self._dated: tuple[object, bytes] = (None, b"")
        self._in_headers = True
        self._header_bytes = 0
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        begins = self._in_headers and not self._header_bytes and self._idle()
        if begins and self._take(data):
            return
        self._data = data if begins else b""
        if self._in_headers:
            self._header_bytes += len(data)
        super().data_received(data)
        self._data = b""
        if self._stop is not None:
            self._take_the_long_way()
        if self._in_headers and self._patience is None and self._idle() and self.timeout_keep_alive_task is None:
            self._await_headers()
        if self._in_headers and self._header_bytes > HEADER_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_MUCH % (len(_PROBLEM), _PROBLEM))
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[TRANSPORT] = self.transport  # type: ignore[literal-required]

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._stop_waiting()
        if self._express is not None and self._idle() and not self.parser.should_upgrade():
            self._stop = self._express.stop_of(self.parser.get_method(), self.url, self.headers)
        if self._stop is None:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if self._stop is None:
            super().on_body(body)
        else:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        if self._stop is None:
            super().on_message_complete()
        else:
            self._go_express(self._stop)
        self._in_headers = True  # of the next request; keep-alive has its own deadline until that begins
        self._header_bytes = 0

    def _idle(self) -> bool:
        """No request of this connection is being answered."""
        cycle: Passage | Any | None = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _take_the_long_way(self) -> None:
        """The body has not arrived yet: uvicorn knows how to wait for it."""
        parts, self._stop, self._parts = self._parts, None, []
        if not self.transport.is_closing():
            super().on_headers_complete()
            for part in parts:
                super().on_body(part)

    def _go_express(self, stop: Stop) -> None:
        keep_alive = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
        passage: Any = Passage(keep_alive)
        body, self.cycle, self._stop, self._parts = b"".join(self._parts), passage, None, []
        task = self.loop.create_task(self._answer(stop, self.headers, body, passage, self._data))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    async def _answer(
        self, stop: Stop, headers: list[tuple[bytes, bytes]], body: bytes, passage: Passage, data: bytes
    ) -> None:
        assert self._express is not None
        try:
            head, content, known = await self._express.answer(stop, headers, body, passage.keep_alive, self.transport)
        except BaseException:  # the server stops and waits no longer
            self.transport.close()
            raise
        if known is not None and data:
            self._express.heads.keep(data, known)
        self._reply(passage, head, content)

    def _take(self, data: bytes) -> bool:
        """A whole request under a known head, that need not wait for anything but the store."""
        express = self._express
        found = None if express is None else express.heads.find(data)
        if express is None or found is None or self.transport.is_closing():
            return False
        head, body = found
        passage: Any = Passage(head.keep_alive)
        if not express.take(head, body, partial(self._reply, passage), self.transport):
            return False
        self.cycle = passage
        self._stop_waiting()
        return True

    def _reply(self, passage: Passage, head: bytes, content: bytes) -> None:
        if passage.disconnected:
            return
        end = b"\r\n" if passage.keep_alive else b"connection: close\r\n\r\n"
        self.transport.write(b"".join((head, self._default_lines(), end, content)))
        passage.response_complete = True
        if not passage.keep_alive:
            self.transport.close()
        if self.pipeline or self.flow.read_paused or self.timeout_keep_alive_task is None:
            self.on_response_complete()
        else:
            self.server_state.total_requests += 1
            self._answered_at = self.loop.time()

    def _default_lines(self) -> bytes:
        """The date, which the server changes each second."""
        if self._dated[0] is not self.server_state.default_headers:
            self._dated = (self.server_state.default_headers, header_lines(self.server_state.default_headers))
        return self._dated[1]

    def timeout_keep_alive_handler(self) -> None:
        """Between express requests the alarm is left as it is set: to cancel it and to set it anew took 3 µs a request.
        So it may ring while one is answered, or too soon after."""
        left = self._answered_at + self.timeout_keep_alive - self.loop.time()
        if not self._idle():
            self.timeout_keep_alive_task = None  # the answer sets it
        elif left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

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
    """Ends the event streams before it waits for connections to end: they would not by themselves. Who waits for an
    answer when the grace is over is hung up on: for what went straight into the group uvicorn has no task to end."""

    def __init__(self, config: uvicorn.Config, app: App) -> None:
        super().__init__(config)
        self._application = app

    async def shutdown(self, sockets: Any = None) -> None:
        self._application.close_streams()
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.close()


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
