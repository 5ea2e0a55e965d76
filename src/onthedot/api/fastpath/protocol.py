"""One connection to the API: creates that came whole go express, everything else uvicorn's way.

Requests that the app serves by `express` and that came in one read are answered here, in one write: uvicorn's way,
with a scope, a cycle and four messages, took 65 to 88 µs of CPU for a request that does nothing; this takes 12. One
whose head is known need not even be parsed.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from onthedot.api.fastpath.creates import Express, Stop
from onthedot.api.http.middleware import header_lines
from onthedot.api.server.protocol import GuardedProtocol
from onthedot.service.aside import SMALL_BYTES

__all__ = ["ApiProtocol"]


class Passage:
    """What uvicorn asks of a request that is being answered, for one that goes express."""

    __slots__ = ("disconnected", "keep_alive", "message_event", "response_complete", "response_started")

    def __init__(self, keep_alive: bool) -> None:
        self.keep_alive = keep_alive
        self.disconnected = False
        self.response_started = False
        self.response_complete = False
        self.message_event = _NOBODY_WAITS


_NOBODY_WAITS = asyncio.Event()


class ApiProtocol(GuardedProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._express: Express | None = getattr(self.app, "express", None)
        self._stop: Stop | None = None
        self._parts: list[bytes] = []
        self._data = b""  # what is being received, if a request begins with it
        self._dated: tuple[object, bytes] = (None, b"")

    def receive(self, data: bytes, *, begins: bool) -> None:
        if begins and self._take(data):
            return
        self._data = data if begins else b""
        super().receive(data, begins=begins)
        self._data = b""

    def received(self) -> None:
        if self._stop is not None:
            self._take_the_long_way()

    def head_complete(self) -> None:
        if self._express is not None and self._idle() and not self.parser.should_upgrade():
            self._stop = self._express.stop_of(self.parser.get_method(), self.url, self.headers)
        if self._stop is None:
            super().head_complete()

    def body_part(self, part: bytes) -> None:
        if self._stop is None:
            super().body_part(part)
        else:
            self._parts.append(part)

    def message_complete(self) -> None:
        if self._stop is not None and sum(map(len, self._parts)) > SMALL_BYTES:
            self._take_the_long_way()
        if self._stop is None:
            super().message_complete()
        else:
            self._go_express(self._stop)

    def _take_the_long_way(self) -> None:
        """The body has not arrived yet: uvicorn knows how to wait for it."""
        parts, self._stop, self._parts = self._parts, None, []
        if not self.transport.is_closing():
            super().head_complete()
            for part in parts:
                super().body_part(part)

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
        if express is None or found is None:
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
        passage.response_started = passage.response_complete = True
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
