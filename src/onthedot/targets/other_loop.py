"""A loop of its own in another thread, and the way there and back: what waits crosses together.

`asyncio.run_coroutine_threadsafe` wakes the other thread for each call and ours for each answer: two system calls and
two turns at the interpreter lock a run. Here one wake-up carries all that gathered while the other loop was busy.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Generic, Self, TypeVar

__all__ = ["OtherLoop"]

T = TypeVar("T")


class _Crossing(Generic[T]):
    """One direction. Any thread may send; `take` is called on the loop `to`, item by item, in order."""

    def __init__(self, to: asyncio.AbstractEventLoop, take: Callable[[T], None]) -> None:
        self._to = to
        self._take = take
        self._waiting: deque[T] = deque()
        self._announced = False

    def send(self, item: T) -> None:
        self._waiting.append(item)
        if not self._announced:
            self._announced = True
            if not self._to.is_closed():
                self._to.call_soon_threadsafe(self._arrive)

    def _arrive(self) -> None:
        self._announced = False  # before the first is taken: what comes from here on announces itself
        while self._waiting:
            self._take(self._waiting.popleft())


class _Errand:
    """One call over there, and the future that waits for it here."""

    __slots__ = ("answer", "task", "unwanted", "work")

    def __init__(self, work: Callable[[], Coroutine[Any, Any, Any]], answer: asyncio.Future[Any]) -> None:
        self.work = work
        self.answer = answer
        self.task: asyncio.Task[Any] | None = None
        self.unwanted = False

    def cancel(self) -> None:
        """On the other loop. It may come before the errand has begun, or after it is done."""
        self.unwanted = True
        if self.task is not None:
            self.task.cancel()


class OtherLoop:
    """`async with OtherLoop("name") as other: await other.run(work)`; leaving cancels what still runs there."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `work()` gives on the other loop. Cancelled here, it is cancelled there."""
        assert self._loop is not None, "not entered"
        errand = _Errand(work, self._home.create_future())
        self._there.send(errand)
        try:
            result: T = await errand.answer
        except asyncio.CancelledError:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(errand.cancel)
            raise
        return result

    def _begin(self, errand: _Errand) -> None:
        if errand.unwanted:
            return
        errand.task = asyncio.get_running_loop().create_task(errand.work())
        errand.task.add_done_callback(lambda _: self._back.send(errand))

    def _end(self, errand: _Errand) -> None:
        assert errand.task is not None
        if errand.answer.done():
            return
        if errand.task.cancelled():
            errand.answer.cancel()
        elif (error := errand.task.exception()) is not None:
            errand.answer.set_exception(error)
        else:
            errand.answer.set_result(errand.task.result())

    async def __aenter__(self) -> Self:
        self._home = asyncio.get_running_loop()
        self._loop = asyncio.new_event_loop()
        self._there = _Crossing(self._loop, self._begin)
        self._back = _Crossing(self._home, self._end)
        self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._loop is None:
            return
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_cancel_rest(), self._loop))
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()
        self._loop = None


async def _cancel_rest() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
