"""Who asks, seen through the connection: whether anybody still waits for what this request will be answered.

A client that hangs up has given up: whatever it asked for and is not written yet, is not written. After a node was
frozen, the request and the end of its connection lie in the socket together, and the loop reads the request first; so
the socket itself is asked, at the last moment. Half-closed connections count as closed: a client that says it sends no
more and waits for the answer is legal, and rare, and no answer would reach it here (the server closes both ways).
"""

from __future__ import annotations

import select
from typing import Any

from starlette.requests import HTTPConnection

from onthedot.api.context import context_of
from onthedot.clock import Clock
from onthedot.errors import Abandoned
from onthedot.model.actor import ChangeActor
from onthedot.model.duration import SECOND
from onthedot.store.abandoned_requests import ASKER, PATIENCE, too_late

__all__ = ["TRANSPORT", "Connected", "ask", "asked_again", "asked_by", "hung_up"]

TRANSPORT = "onthedot.transport"
"""Where a request's scope has its connection."""

_HANG_UP = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


class Connected:
    """The asker of one request."""

    __slots__ = ("_clock", "_since", "_transport", "actor", "name")

    def __init__(self, transport: Any, clock: Clock, name: str | None = None) -> None:
        self.name = name
        self.actor: ChangeActor | None = None
        self._transport = transport
        self._clock = clock
        self._since = clock.monotonic()

    def restart(self) -> None:
        """The deadline counts from when the request was there as a whole."""
        self._since = self._clock.monotonic()

    def check(self, *, late: bool = True) -> None:
        if hung_up(self._transport):
            raise Abandoned("the client disconnected before the request was carried out; nothing was written")
        if late and self._clock.monotonic() - self._since > PATIENCE / SECOND:
            raise too_late()


def ask(connection: HTTPConnection) -> None:
    """From here on what this request writes is written for who sent it."""
    ASKER.set(Connected(connection.scope.get(TRANSPORT), context_of(connection).clock))


def asked_by(name: str | None, actor: ChangeActor) -> None:
    """Who it is was found out. `name`: of its key."""
    if isinstance(asker := ASKER.get(), Connected):
        asker.name, asker.actor = name, actor


def asked_again() -> None:
    """The body has arrived."""
    if isinstance(asker := ASKER.get(), Connected):
        asker.restart()


def hung_up(transport: Any) -> bool:
    """Whether the other side has closed, though nobody may have read so far yet. About a microsecond."""
    if transport is None:  # no connection at all: a caller in this process
        return False
    if transport.is_closing():
        return True
    socket = transport.get_extra_info("socket")
    descriptor = -1 if socket is None else socket.fileno()
    if descriptor < 0:
        return socket is not None
    poll = select.poll()
    poll.register(descriptor, _HANG_UP)
    return bool(poll.poll(0))
