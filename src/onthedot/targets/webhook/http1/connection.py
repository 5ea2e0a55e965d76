"""One connection to a receiver: one request at a time, and what became of it.

Who asked is called where the last byte of the answer is read: no task, no future, no queue, no stream in between. That
is what makes a send cost a fifth of aiohttp's (docs/adr/0009).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from onthedot.targets.webhook.http1.response import NotHttp, Reading, WebhookResponse

__all__ = ["ReceiverConnection", "Unanswered"]

BODY_WAIT = 1.0
"""Seconds for a body to come, once the head is there: long enough for the connection to be worth keeping."""

Origin = tuple[bool, str, int]
"""TLS or not, host and port: what a connection may be used again for."""


class Unanswered(Exception):
    """An attempt without an answer: what happened, and why as far as it is known."""

    def __init__(self, what: str, why: object = None) -> None:
        super().__init__(what if why is None else f"{what}: {str(why) or type(why).__name__}")


Tell = Callable[[WebhookResponse | Unanswered], None]


class ReceiverConnection(asyncio.Protocol):
    """`reusable` after an answer says whether another request may be sent; if not, it is closed already."""

    __slots__ = ("_gone", "_loop", "_reading", "_tell", "_timer", "_transport", "kept_for", "origin", "reusable")

    def __init__(self, origin: Origin, gone: Callable[[ReceiverConnection], None]) -> None:
        self.origin = origin
        self.reusable = False
        self.kept_for: float | None = None
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reading: Reading | None = None
        self._tell: Tell | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def alive(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def ask(self, request: bytes, tell: Tell, *, is_head: bool = False) -> None:
        """Send it; `tell` is called once, never from within."""
        assert self._reading is None, "one request at a time"
        self.reusable = False
        if self._transport is None:
            self._loop.call_soon(tell, Unanswered("the receiver closed the connection without responding"))
            return
        self._tell = tell
        self._reading = Reading(is_head=is_head)
        self._transport.write(request)

    def close(self) -> None:
        """With the goodbye that TLS asks for."""
        self.reusable = False
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    def drop(self) -> None:
        """Nobody waits for its answer any more, nor is told."""
        self._forget_request()
        self.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one by behaviour, not by class

    def data_received(self, data: bytes) -> None:
        reading = self._reading
        if reading is None:  # nobody asked: a 408 for an idle connection, or the rest of a body that was not announced
            self.abort()
            return
        try:
            reading.feed(data)
        except NotHttp as error:
            self._fail(Unanswered("invalid HTTP response", error))
            return
        if reading.complete:
            self._end(reading)
        elif reading.status and self._timer is None:
            self._timer = self._loop.call_later(BODY_WAIT, self._end, reading)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self.reusable = False
        reading = self._reading
        if reading is not None and reading.status:
            self._end(reading)
        elif reading is not None and error is not None:
            self._fail(Unanswered("connection lost", error))
        elif reading is not None:
            self._fail(Unanswered("the receiver closed the connection without responding"))
        self._gone(self)

    def _end(self, reading: Reading) -> None:
        """The verdict is there, with as much of the body as came."""
        transport, tell = self._transport, self._tell
        self._forget_request()
        if transport is not None:
            # A receiver that answers before it has read the whole request won't read the rest of it as a new one.
            self.reusable = reading.reusable and not transport.is_closing() and not transport.get_write_buffer_size()
            if self.reusable:
                self.kept_for = reading.kept_for()
            else:
                transport.abort()
        if tell is not None:
            tell(reading.answer())

    def _fail(self, error: Unanswered) -> None:
        tell = self._tell
        self._forget_request()
        self.abort()
        if tell is not None:
            tell(error)

    def _forget_request(self) -> None:
        self._reading = self._tell = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
