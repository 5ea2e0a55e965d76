"""An event loop whose time is a number, and on which whole processes can stand still.

When nothing is ready, time jumps to the next timer. Every callback carries the context it was made in, and the context
names the process it belongs to: while that process is frozen its callbacks pile up, and run in their order when it is
thawed, late, as after SIGSTOP and SIGCONT. A killed process is one that is never thawed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context, ContextVar, copy_context
from functools import partial
from heapq import heappop, heappush
from typing import Any, TypeVarTuple, Unpack, cast

__all__ = ["PLACE", "Deadlock", "Place", "VirtualLoop", "at_once"]


Args = TypeVarTuple("Args")

INSTANT = 1e-6
"""Seconds that one round of the loop takes: whoever looks again for the next microsecond must see it come."""

SPIN = 2000
"""Rounds in a row with something always ready: somebody asks again and again without sleeping. (20 are the most that
three seeds had.)"""


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


class _Turn(asyncio.TimerHandle):
    """One callback to come. As the standard one without debugging, and made and cancelled in a third of the time."""

    __slots__ = ()

    def __init__(self, when: float, callback: Callable[..., object], args: Sequence[Any], context: Context) -> None:
        handle: Any = self
        handle._when, handle._callback, handle._args, handle._context = when, callback, args, context
        handle._cancelled = False

    def __repr__(self) -> str:
        return f"<{_named(cast('Any', self)._callback)} at {self.when():.6f}>"

    def cancel(self) -> None:
        handle: Any = self
        handle._cancelled, handle._callback, handle._args = True, None, ()


class _Task(asyncio.Task[Any]):
    """Numbered: in a set, tasks stand in the order of their hashes, and that must not be where in memory they lie. (A
    set of loops to cancel made the history of a seed depend on the seeds that were played before it.)"""

    number = 0

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.BaseEventLoop):
    """Deterministic: no threads, no sockets, no clock of the machine.

    What is to come lies in the heap as (when, number, …): compared by the interpreter itself, and in its order if it is
    due at the same time. (Handles that compare themselves were called 700,000 times a seed.) What belongs to no process
    needs neither handle nor context: it lies there, and among what is ready, as a bare function with its arguments.
    That is every third turn.
    """

    # Of the standard loop's own machinery: declared here because its stubs do not.
    _ready: Any
    _scheduled: Any
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._number = 0
        self._tasks = 0
        self.turns = 0
        self.set_exception_handler(self._collect)
        self.errors: list[str] = []
        self._patience = SPIN
        cast("Any", self).create_future = partial(asyncio.Future, loop=self)  # a frame less for each of 50,000

    def _collect(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.errors.append(f"{context.get('message')}: {context.get('exception')!r}")

    def time(self) -> float:
        return self.now

    get_debug = cast("Any", bool)
    """Never. Each future asks, so this one is answered without a frame of Python."""

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Args]], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        turn = _Turn(when, callback, args, copy_context() if context is None else context)
        self._number += 1
        heappush(self._scheduled, (when, self._number, turn))
        return turn

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Args]], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        when = self.now + delay
        turn = _Turn(when, callback, args, copy_context() if context is None else context)
        self._number += 1
        heappush(self._scheduled, (when, self._number, turn))
        return turn

    def call_soon(
        self,
        callback: Callable[[Unpack[Args]], object],
        *args: *Args,
        context: Context | None = None,
    ) -> asyncio.Handle:
        turn = _Turn(0.0, callback, args, copy_context() if context is None else context)
        self._ready.append(turn)
        return turn

    def create_task(self, coro: Any, *, name: Any = None, context: Context | None = None) -> asyncio.Task[Any]:
        task = _Task.__new__(_Task)
        self._tasks += 1
        task.number = self._tasks  # before the rest: the table of all tasks asks for its hash
        _Task.__init__(task, coro, loop=self, name=name, context=context)
        return task

    def outside_later(self, delay: float, act: Callable[[Unpack[Args]], object], *args: *Args) -> None:
        """What happens in the world, not in a process: it can't be frozen, and nobody takes it back."""
        self._number += 1
        heappush(self._scheduled, (self.now + delay, self._number, (act, args)))

    async def pause(self, seconds: float) -> None:
        """Sleep. The time is up for a frozen process too; it only learns of it when it is thawed."""
        woken = self.create_future()
        self.outside_later(seconds, _wake, woken)
        await woken

    def freeze(self, place: Place) -> None:
        place.standing = True

    def thaw(self, place: Place) -> None:
        place.standing = False
        self._ready.extend(place.parked)
        place.parked.clear()

    def _run_once(self) -> None:
        """All rounds until somebody stops the loop."""
        scheduled, ready, turns, busy = self._scheduled, self._ready, 0, 0
        while True:
            now = self.now = self.now + INSTANT
            if ready:
                busy += 1
                if busy > self._patience:
                    busy, now = 0, self._spun()
            else:
                busy = 0
                while scheduled and type(scheduled[0][2]) is _Turn and scheduled[0][2]._cancelled:
                    heappop(scheduled)
                if not scheduled:
                    if self._stopping:
                        break
                    raise Deadlock(f"nothing left to do at {now:.3f} s")
                if scheduled[0][0] > now:
                    now = self.now = scheduled[0][0]
            while scheduled and scheduled[0][0] <= now:
                ready.append(heappop(scheduled)[2])
            for _ in range(len(ready)):
                turn = ready.popleft()
                try:
                    if type(turn) is tuple:
                        turns += 1
                        turn[0](*turn[1])
                    elif not turn._cancelled:
                        place = turn._context.get(PLACE)
                        if place is not None and place.standing:
                            place.parked.append(turn)
                        else:
                            turns += 1
                            turn._context.run(turn._callback, *turn._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    what = turn[0] if type(turn) is tuple else turn._callback
                    self.errors.append(f"{_named(what)}: {error!r}")
            if self._stopping:
                break
        self.turns += turns

    def _spun(self) -> float:
        """It is told, and time goes on all the same, so that the rest of the history is there to read."""
        self.errors.append(f"something spins: {self._patience} turns, and no time passed")
        self._patience = SPIN // 20
        self.now = max(self.now, self._scheduled[0][0]) if self._scheduled else self.now
        return self.now

    def _process_events(self, event_list: Any) -> None:
        """There are no events but timers."""

    def _write_to_self(self) -> None:
        """Nobody sleeps in a selector."""


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


def _named(what: Any) -> str:
    """Without an address in memory: what stands in a history must be the same when it is played again."""
    return getattr(what, "__qualname__", type(what).__name__)


def at_once(coroutine: Any) -> Any:
    """Run what is written as a coroutine but never waits: the store without threads. It may breathe: nothing else is
    let in meanwhile, as one transaction lets nothing in."""
    try:
        while coroutine.send(None) is None:
            pass
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("this was not supposed to wait")
