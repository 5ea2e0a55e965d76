"""uvicorn, with what it lacks against clients that mean harm.

Whatever a client sends, and however slowly, takes a bounded part of the process: bytes of heads, of trailers and of
what surrounds chunks; one request after the other, the rest of what came waits and no more is read; a deadline for the
head, for a body that nobody wants any more, and for taking the answer. `load` counts what all of them together hold.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from onthedot.api.http.client_connection import TRANSPORT
from onthedot.api.server.flow import CountedServerState, HoldingFlow
from onthedot.api.server.refusals import CROWDED, FULL, HEAD_TOO_LARGE, NOT_HTTP, TRAILERS_TOO_LARGE

__all__ = ["GuardedProtocol"]

HEADER_BYTES = 64 * 1024
HEADERS_MOST = 256
FRAMING_BYTES = 64 * 1024  # chunk sizes, their extensions and trailers, beside eight times what they carry
HEADER_SECONDS = 15.0
WRITE_SECONDS = 20.0  # in which a client takes 16 KiB of its answer, or the rest of it
UNWANTED_SECONDS = 5.0  # for the rest of a body whose answer has been given
LINGER_SECONDS = 10.0  # for the last bytes of a connection that is being closed
PROGRESS_BYTES = 16 * 1024
PORTION = 512  # parsed at once: no more small requests than fit into it are ever made of one read
TURN_BYTES = 8 * 1024  # of one connection before others have their turn


class _TooManyHeaders(Exception):
    pass


class _AnswersLast:
    """The connection as uvicorn's answer sees it. What closes it waits for the rest of the request: if bytes were left
    unread, the kernel would reset the connection, and the client would lose the answer that says why."""

    __slots__ = ("close", "is_closing", "write")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write, self.is_closing, self.close = transport.write, transport.is_closing, close


class GuardedProtocol(HttpToolsProtocol):
    """One connection. uvicorn, and the parser below it, would collect what comes for ever, and wait for it for ever."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.access_log = False  # requests are counted, not written
        self.address = ""
        assert isinstance(self.server_state, CountedServerState), "the server is our own"
        self._load = self.server_state.load
        self._answered_at = -math.inf
        self._in_headers = True
        self._header_bytes = 0
        self._counted_bytes = 0  # of `_header_bytes`: those that `load` knows of
        self._crowded = False
        self._body_bytes = 0
        self._framing_bytes = 0
        self._length: int | None = None  # of the body; -1: it comes in chunks; None: not asked yet
        self._held = b""  # came, and waits until what was asked before it is answered
        self._resuming: asyncio.Handle | None = None
        self._deaf = False
        self._head_deadline: asyncio.TimerHandle | None = None
        self._unread: tuple[int, float] | None = None  # bytes of answers that were not taken, since when
        self._leaving_since: float | None = None
        self._is_last = False  # what is received: it was answered with "connection: close", and is thrown away

    # Coming and going

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = self._flow = HoldingFlow(transport, self._soon)
        self._answers: Any = _AnswersLast(transport, self._close_after_request)
        self.address = self.client[0] if self.client else ""
        self._answered_at = self.loop.time()
        if self._load.admit(self):
            self._await_headers()
        else:
            self._refuse(FULL)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._unset_keepalive_if_required()
        self._load.leave(self)
        self._count_head(0)
        self._release()
        super().connection_lost(exc)

    def idle_since(self) -> float | None:
        if self._in_headers and not self._header_bytes and not self._held and self._idle():
            return self._answered_at
        return None

    def is_answered(self) -> bool:
        return self._idle()

    def hang_up(self) -> None:
        self.transport.close()

    # Receiving

    def data_received(self, data: bytes) -> None:
        if self._deaf or self.transport.is_closing():
            return
        if self._held or self.flow.write_paused:
            self._hold(self._held + data)
            return
        self.receive(data, begins=self._in_headers and not self._header_bytes and self._idle())

    def receive(self, data: bytes, *, begins: bool) -> None:
        """`begins`: with the first byte of a request, and nothing is being answered."""
        self._feed(data)

    def _feed(self, data: bytes) -> None:
        """Portion by portion, and no further than to the end of a request that has to be answered first."""
        self._unset_keepalive_if_required()
        start, size, turn = 0, len(data), TURN_BYTES
        while start < size and not self.transport.is_closing() and not self._deaf:
            if self._must_wait():
                self._hold(data[start:])
                break
            if start >= turn:
                self._hold(data[start:])
                self._soon()
                break
            end = start + self._portion(data, start)
            if self._length != -1 and not self._in_headers:
                turn += end - start  # the body itself costs next to nothing
            self._parse(data[start:end])
            start = end
        self.received()
        if self._in_headers and self._head_deadline is None and self._idle() and self.timeout_keep_alive_task is None:
            self._await_headers()

    def received(self) -> None:
        """All that can be parsed for now is parsed."""

    def _portion(self, data: bytes, start: int) -> int:
        if self._in_headers:
            end = data.find(b"\r\n\r\n", start, start + PORTION)
            return PORTION if end < 0 else end + 4 - start
        if self._length is None:
            self._length = next((int(value) for name, value in self.headers if name == b"content-length"), -1)
        return PORTION if self._length < 0 else min(max(self._length - self._body_bytes, 1), HIGH_WATER_LIMIT)

    def _parse(self, portion: bytes) -> None:
        in_headers = self._in_headers
        if in_headers:
            self._header_bytes += len(portion)
        else:
            self._framing_bytes += len(portion)
        try:
            self.parser.feed_data(portion)
        except httptools.HttpParserUpgrade:  # not made; what follows is no HTTP any more
            self._deaf = True
            self.cycle.keep_alive = False
        except httptools.HttpParserError:
            self._refuse(CROWDED if self._crowded else NOT_HTTP)
            return
        if self._in_headers:
            if self._header_bytes > HEADER_BYTES:
                self._refuse(HEAD_TOO_LARGE)
            elif not self._count_head(self._header_bytes):
                self._refuse(FULL)
        elif self._framing_bytes > FRAMING_BYTES + 8 * self._body_bytes:
            self._refuse(TRAILERS_TOO_LARGE)

    def _count_head(self, size: int) -> bool:
        """Heads that are not complete wait as well. A small one is not worth the counting."""
        size = 0 if size <= PORTION else size
        if size > self._counted_bytes and not self._load.wait(size - self._counted_bytes):
            return False
        if size < self._counted_bytes:
            self._load.done(self._counted_bytes - size)
        self._counted_bytes = size
        return True

    def _must_wait(self) -> bool:
        if self.flow.write_paused:
            return True
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            return False
        return self._in_headers or len(cycle.body) > HIGH_WATER_LIMIT

    def _hold(self, data: bytes) -> None:
        more = len(data) - len(self._held)
        if not self._load.wait(more):
            self._refuse(FULL)
            return
        self._held = data
        self._flow.held_back = True
        self.flow.pause_reading()

    def _release(self) -> bytes:
        held, self._held = self._held, b""
        self._load.done(len(held))
        self._flow.held_back = False
        if self._resuming is not None:
            self._resuming.cancel()
            self._resuming = None
        return held

    def _soon(self) -> None:
        if self._resuming is None:
            self._resuming = self.loop.call_soon(self._resume)

    def _resume(self) -> None:
        self._resuming = None
        if self.transport.is_closing() or self._must_wait():
            return
        self.data_received(self._release())
        if not self._flow.held_back and not self._must_wait():
            self.flow.resume_reading()

    # What the parser says

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[TRANSPORT] = self.transport  # type: ignore[literal-required]

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_headers:
            return  # a trailer is no header: whoever checked the head has not seen it
        if len(self.headers) >= HEADERS_MOST:
            self._crowded = True
            raise _TooManyHeaders
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_headers = False
        self._length = None
        self._body_bytes = self._framing_bytes = 0
        self._stop_waiting()
        self.head_complete()

    def head_complete(self) -> None:
        super().on_headers_complete()
        self.cycle.transport = self._answers

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        self._framing_bytes -= len(body)
        self.body_part(body)

    def body_part(self, part: bytes) -> None:
        super().on_body(part)

    def on_message_complete(self) -> None:
        self.message_complete()
        if self._is_last:
            self.transport.close()
        self._in_headers = True  # of the next request; keep-alive has its own deadline until that begins
        self._header_bytes = 0
        self._count_head(0)

    def message_complete(self) -> None:
        super().on_message_complete()

    # Answering

    def _idle(self) -> bool:
        """No request of this connection is being answered."""
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def on_response_complete(self) -> None:
        self._answered_at = self.loop.time()
        super().on_response_complete()

    def _close_after_request(self) -> None:
        """For `UNWANTED_SECONDS` at most."""
        if not self.cycle.more_body:
            self.transport.close()
        elif not self.transport.is_closing():
            self._is_last = True
            if self.transport.can_write_eof():
                self.transport.write_eof()

    def _refuse(self, answer: bytes) -> None:
        """Say why, unless something else has been said already, and end it."""
        if self.transport.is_closing():
            return
        self._deaf = True
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(answer)
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()

    # Deadlines

    def timeout_keep_alive_handler(self) -> None:
        """Between requests of the fast path the timer is left as it is set: to cancel it and to set it anew took 3 µs a
        request. So it may go off while one is answered, or too soon after."""
        left = self._answered_at + self.timeout_keep_alive - self.loop.time()
        if not self._idle():
            self.timeout_keep_alive_task = None  # the answer sets it
        elif left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    def look(self, now: float) -> int:
        """Once a second: a client that neither gives nor takes is left. How many bytes it has not taken."""
        transport = self.transport
        if transport.is_closing():
            self._leaving_since = self._leaving_since or now
            if now - self._leaving_since > LINGER_SECONDS:
                transport.abort()
        elif not self._in_headers and self._idle() and now - self._answered_at > UNWANTED_SECONDS:
            transport.close()
        size = transport.get_write_buffer_size()
        if not size:
            self._unread = None
        elif self._unread is None or size <= self._unread[0] - PROGRESS_BYTES:
            self._unread = size, now
        elif now - self._unread[1] > WRITE_SECONDS:
            transport.abort()
        return size

    def unread_since(self) -> float:
        return math.inf if self._unread is None else self._unread[1]

    def _await_headers(self) -> None:
        self._head_deadline = self.loop.call_later(HEADER_SECONDS, self._headers_are_late)

    def _headers_are_late(self) -> None:
        self._head_deadline = None
        if self._in_headers and self._idle():
            self.transport.close()

    def _stop_waiting(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None
