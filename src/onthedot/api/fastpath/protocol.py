"""One connection to the API: creates that came in one piece take the fast path, everything else uvicorn's way.

Requests that the app's fast path serves and that came in one read are answered here, in one write: uvicorn's way, with
a scope, a cycle and four messages, took 65 to 88 µs of CPU for a request that does nothing; this takes 12. One whose
head is known need not even be parsed.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from onthedot.api.fastpath.creates import FastPath, FastRoute
from onthedot.api.http.middleware import header_lines
from onthedot.api.server.protocol import GuardedProtocol
from onthedot.service.aside import SMALL_BYTES

__all__ = ["ApiProtocol"]


class FastCycle:
    """What uvicorn asks of a request that is being answered, for one that takes the fast path."""

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
        self._fastpath: FastPath | None = getattr(self.app, "fastpath", None)
        self._route: FastRoute | None = None
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
        if self._route is not None:
            self._take_the_ordinary_way()

    def head_complete(self) -> None:
        if self._fastpath is not None and self._idle() and not self.parser.should_upgrade():
            self._route = self._fastpath.route_of(self.parser.get_method(), self.url, self.headers)
        if self._route is None:
            super().head_complete()

    def body_part(self, part: bytes) -> None:
        if self._route is None:
            super().body_part(part)
        else:
            self._parts.append(part)

    def message_complete(self) -> None:
        if self._route is not None and sum(map(len, self._parts)) > SMALL_BYTES:
            self._take_the_ordinary_way()
        if self._route is None:
            super().message_complete()
        else:
            self._answer_fast(self._route)

    def _take_the_ordinary_way(self) -> None:
        """The body has not arrived yet: uvicorn knows how to wait for it."""
        parts, self._route, self._parts = self._parts, None, []
        if not self.transport.is_closing():
            super().head_complete()
            for part in parts:
                super().body_part(part)

    def _answer_fast(self, route: FastRoute) -> None:
        keep_alive = self.parser.get_http_version() != "1.0" and self.parser.should_keep_alive()
        cycle: Any = FastCycle(keep_alive)
        body, self.cycle, self._route, self._parts = b"".join(self._parts), cycle, None, []
        task = self.loop.create_task(self._answer(route, self.headers, body, cycle, self._data))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    async def _answer(
        self, route: FastRoute, headers: list[tuple[bytes, bytes]], body: bytes, cycle: FastCycle, data: bytes
    ) -> None:
        assert self._fastpath is not None
        try:
            head, content, known = await self._fastpath.answer(route, headers, body, cycle.keep_alive, self.transport)
        except BaseException:  # the server stops and waits no longer
            self.transport.close()
            raise
        if known is not None and data:
            self._fastpath.heads.keep(data, headers, known)
        self._reply(cycle, head, content)

    def _take(self, data: bytes) -> bool:
        """A whole request under a known head, that need not wait for anything but the store."""
        fastpath = self._fastpath
        known = None if fastpath is None else fastpath.heads.find(data)
        if fastpath is None or known is None:
            return False
        cycle: Any = FastCycle(known.head.keep_alive)
        if not fastpath.take(known, partial(self._reply, cycle), self.transport):
            return False
        self.cycle = cycle
        self._stop_waiting()
        return True

    def _reply(self, cycle: FastCycle, head: bytes, content: bytes) -> None:
        if cycle.disconnected:
            return
        end = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
        self.transport.write(b"".join((head, self._default_lines(), end, content)))
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
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
