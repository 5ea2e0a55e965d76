"""An event loop whose time is a number, and on which whole processes can stand still.

When nothing is ready, time jumps to the next timer. Every callback carries the context it was made in, and the context
names the process it belongs to: while that process is frozen its callbacks pile up, and run in their order when it is
thawed, late, as after SIGSTOP and SIGCONT. A killed process is one that is never thawed.
"""

from __future__ import annotations

import asyncio
import heapq
from contextvars import Context, ContextVar, copy_context
from typing import Any

__all__ = ["PLACE", "Deadlock", "Place", "VirtualLoop", "at_once", "outside"]


INSTANT = 1e-6
"""Seconds that one round of the loop takes: whoever looks again for the next microsecond must see it come."""


class Deadlock(Exception):
    """Nothing is ready and nothing ever will be."""


class Place:
    """Where code runs: one operating system process."""

    __slots__ = ("context", "name", "parked", "standing")

    def __init__(self, name: str) -> None:
        self.name = name
        self.standing = False
        self.parked: list[asyncio.Handle] = []
        self.context: Context = copy_context()
        self.context.run(PLACE.set, self)


PLACE: ContextVar[Place | None] = ContextVar("place", default=None)


def outside() -> Context:
    """The context of what belongs to no process that could be frozen: the database, the receiver, the network."""
    context = copy_context()
    context.run(PLACE.set, None)
    return context


class VirtualLoop(asyncio.BaseEventLoop):
    """Deterministic: no threads, no sockets, no clock of the machine."""

    # Of the standard loop's own machinery: declared here because its stubs do not.
    _ready: Any
    _scheduled: Any
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self.turns = 0
        self.set_exception_handler(self._collect)
        self.errors: list[str] = []

    def _collect(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

    def time(self) -> float:
        return self._now

    def freeze(self, place: Place) -> None:
        place.standing = True

    def thaw(self, place: Place) -> None:
        place.standing = False
        self._ready.extend(place.parked)
        place.parked.clear()

    def _run_once(self) -> None:
        scheduled, ready = self._scheduled, self._ready
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        self._now += INSTANT
        if not ready:
            if not scheduled:
                if self._stopping:
                    return
                raise Deadlock(f"nothing left to do at {self._now:.3f} s")
            self._now = max(self._now, scheduled[0]._when)
        while scheduled and scheduled[0]._when <= self._now:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            ready.append(handle)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            place = handle._context.get(PLACE)
            if place is not None and place.standing:
                place.parked.append(handle)
            else:
                self.turns += 1
                handle._run()

    def _process_events(self, event_list: Any) -> None:
        """There are no events but timers."""

    def _write_to_self(self) -> None:
        """Nobody sleeps in a selector."""


def at_once(coroutine: Any) -> Any:
    """Run what is written as a coroutine but never waits: the store without threads."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("this was not supposed to wait")
