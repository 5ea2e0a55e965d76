"""A loop of its own in another thread, and the way there and back: what waits crosses together.

Each crossing is a system call and a turn at the interpreter lock, so there is one for all that one pass of a loop has
gathered, in both directions, and it wakes nobody while it has the lock (`bell`). And calls that end at once share a
task: a task takes one after the other until one of them has to wait; that one keeps the task, and another task takes
over the rest.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Protocol, Self

from onthedot.targets.bell import Bell

__all__ = ["Errand", "OtherLoop"]

TOGETHER = 64
"""Calls that one task carries out before the loop is let to the others that run on it."""


class Errand(Protocol):
    """One call over there."""

    unwanted: bool  # set here, by `withdraw`

    async def carry_out(self) -> None:
        """On the other loop; keeps its own result and never raises but CancelledError, when it is unwanted."""
        ...

    def bring_home(self) -> None:
        """On the loop it came from, when it is carried out. Does nothing if it is unwanted."""
        ...


class OtherLoop:
    """`async with OtherLoop("name") as other: other.send(errand)`; leaving cancels what still runs there."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._there: Bell | None = None
        self._outgoing: list[Errand] = []
        self._waiting: deque[Errand] = deque()  # over there; both threads use it, and the next one
        self._home_coming: deque[Callable[[], None]] = deque()
        self._carried_out: list[Errand] = []
        self._at_work: dict[Errand, asyncio.Task[None]] = {}
        self._worker: asyncio.Task[None] | None = None

    # here

    def send(self, errand: Errand) -> None:
        """It leaves with all others of this pass of the loop."""
        self._outgoing.append(errand)
        if len(self._outgoing) == 1:
            self._home.call_soon(self._cross)

    def withdraw(self, errand: Errand) -> None:
        """Its answer is not waited for any more. If it has begun, it is cancelled over there."""
        errand.unwanted = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._cancel, errand)

    def send_from_thread(self, errand: Errand) -> None:
        self._waiting.append(errand)
        self._over_there.call_soon_threadsafe(self._arrive)

    def say(self, what: Callable[[], None]) -> None:
        """From any thread, also when it is over: `what` is called at home, before whatever is carried out from now on
        comes there."""
        self._home_coming.append(what)
        if not self._home.is_closed():
            self._home.call_soon_threadsafe(self._bring_home)

    def _cross(self) -> None:
        leaving, self._outgoing = self._outgoing, []
        if self._there is not None:
            self._waiting.extend(leaving)
            self._there.ring()

    def _bring_home(self) -> None:
        try:
            while self._home_coming:
                self._home_coming.popleft()()
        finally:
            if self._home_coming:  # one of them failed: the others must not wait for the next ring
                self._home.call_soon(self._bring_home)

    @property
    def _over_there(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None, "not entered"
        return self._loop

    # over there

    def _arrive(self) -> None:
        if self._worker is None:
            self._take_over()

    def _take_over(self) -> None:
        """Who is still at work has a call that waits, and leaves after it; somebody else takes the rest."""
        self._worker = None
        if self._waiting:
            loop = self._loop
            assert loop is not None
            self._worker = loop.create_task(self._work())
            loop.call_soon(self._take_over)  # right after its first step
        self._cross_back()

    async def _work(self) -> None:
        me = asyncio.current_task()
        assert me is not None
        for _ in range(TOGETHER):
            if not self._waiting:
                break
            errand = self._waiting.popleft()
            if errand.unwanted:
                continue
            before = copy_context()
            self._at_work[errand] = me
            try:
                await errand.carry_out()
            finally:
                del self._at_work[errand]
            self._done(errand)
            # The next call must find the task as if it were new: not waited in, not cancelled, nothing left in it.
            if self._worker is not me or me.cancelling() or not _unchanged(before):
                break

    def _cancel(self, errand: Errand) -> None:
        task = self._at_work.get(errand)
        if task is not None:
            task.cancel()

    def _done(self, errand: Errand) -> None:
        self._carried_out.append(errand)
        if len(self._carried_out) == 1 and self._worker is None:  # else whoever takes over brings it, a pass earlier
            assert self._loop is not None
            self._loop.call_soon(self._cross_back)

    def _cross_back(self) -> None:
        leaving, self._carried_out = self._carried_out, []
        if leaving:
            self._home_coming.extend([errand.bring_home for errand in leaving])
            self._back.ring()

    # opening and closing

    async def __aenter__(self) -> Self:
        self._home = asyncio.get_running_loop()
        self._loop = _like(self._home)
        self._there, self._back = Bell(self._loop, self._arrive), Bell(self._home, self._bring_home)
        self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._loop is None or self._there is None:
            return
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_cancel_rest(), self._loop))
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._there.close()
        self._back.close()
        self._loop.close()
        self._there = self._loop = None
        self._bring_home()  # what came after the last ring that was heard


def _like(home: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
    """uvloop, if that is what the program chose to run on: its passes cost half as much."""
    chosen = type(home)
    return chosen() if chosen.__module__ == "uvloop" else asyncio.new_event_loop()


def _unchanged(before: Context) -> bool:
    try:
        return copy_context() == before
    except Exception:  # of a value that can't be compared, and so is not the one that was there
        return False


async def _cancel_rest() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
