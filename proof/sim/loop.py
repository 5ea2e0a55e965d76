"""An event loop whose time is a number, and on which whole processes can stand still.

When nothing is ready, time jumps to the next timer. Every callback carries the context it was made in, and the context
names the process it belongs to: while that process is frozen its callbacks pile up, and run in their order when it is
thawed, late, as after SIGSTOP and SIGCONT. A killed process is one that is never thawed.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Sequence
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVarTuple, Unpack, cast

__all__ = ["PLACE", "Deadlock", "Place", "VirtualLoop", "at_once", "outside"]


Args = TypeVarTuple("Args")

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


class _Timer(asyncio.TimerHandle):
    """As the standard one makes it without debugging, in a third of the time."""

    __slots__ = ()

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: Sequence[Any],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        handle: Any = self
        handle._context = copy_context() if context is None else context
        handle._loop, handle._callback, handle._args = loop, callback, args
        handle._cancelled, handle._repr, handle._source_traceback = False, None, None
        handle._when, handle._scheduled = when, True


class VirtualLoop(asyncio.BaseEventLoop):
    """Deterministic: no threads, no sockets, no clock of the machine.

    Timers lie in the heap as (when, number, handle): compared by the interpreter itself, and in their order if they are
    due at the same time. (Handles that compare themselves were called 700,000 times a seed.)
    """

    # Of the standard loop's own machinery: declared here because its stubs do not.
    _ready: Any
    _scheduled: Any
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._number = 0
        self.turns = 0
        self.set_exception_handler(self._collect)
        self.errors: list[str] = []

    def _collect(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

    def time(self) -> float:
        return self._now

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Args]], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = _Timer(when, callback, args, self, context)
        self._number += 1
        heapq.heappush(self._scheduled, (when, self._number, timer))
        return timer

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Args]], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_soon(
        self,
        callback: Callable[[Unpack[Args]], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.Handle:
        handle = _Timer(0.0, callback, args, self, context)
        cast("Any", handle)._scheduled = False
        self._ready.append(handle)
        return handle

    def freeze(self, place: Place) -> None:
        place.standing = True

    def thaw(self, place: Place) -> None:
        place.standing = False
        self._ready.extend(place.parked)
        place.parked.clear()

    def _run_once(self) -> None:
        scheduled, ready = self._scheduled, self._ready
        while scheduled and scheduled[0][2]._cancelled:
            heapq.heappop(scheduled)[2]._scheduled = False
        self._now += INSTANT
        if not ready:
            if not scheduled:
                if self._stopping:
                    return
                raise Deadlock(f"nothing left to do at {self._now:.3f} s")
            self._now = max(self._now, scheduled[0][0])
        now, pop = self._now, heapq.heappop
        while scheduled and scheduled[0][0] <= now:
            handle = pop(scheduled)[2]
            handle._scheduled = False
            ready.append(handle)
        turns = 0
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            place = handle._context.get(PLACE)
            if place is not None and place.standing:
                place.parked.append(handle)
            else:
                turns += 1
                handle._run()
        self.turns += turns

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
