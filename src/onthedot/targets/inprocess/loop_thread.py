"""A loop of its own in another thread, and the way there and back: what waits crosses together.

Each crossing is a system call and a turn at the interpreter lock, so there is one for all that one pass of a loop has
gathered, in both directions, and it wakes nobody while it has the lock (`loop_wakeup`). And calls that end at once
share a task: a task takes one after the other until one of them has to wait; that one keeps the task, and another task
takes over the rest.

A call may be handed over before its instant too; then nobody here wakes when it comes, and its result may wait a moment
for others (`timer_queue`).
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Protocol, Self

from onthedot.clock import Clock, SystemClock
from onthedot.targets.inprocess.loop_wakeup import LoopWakeup
from onthedot.targets.inprocess.timer_queue import TimerQueue

__all__ = ["LoopThread", "ThreadCall"]

TOGETHER = 64
"""Calls that one task carries out before the loop is let to the others that run on it."""
GATHER = 10
GATHER_SECONDS = 0.09
"""How many results of calls that were handed over early wait over there for one another, and how long at most: a little
more than what the next ones, 83 ms after the last, find and take home. They are not written yet, and what is not runs
again if the process is killed: at 100 a second three, in eight kills none to seven. (The engine would let them wait as
well, with the thread at home woken for each: `engine.recording.batch_window`.)"""
CHECK = 0.25
"""Seconds between two looks, while calls wait for their instant, at which of them have begun and not ended, and at
whether a result still lies there: a call may keep the other loop to itself."""


class ThreadCall(Protocol):
    """One call over there."""

    def may_wait(self) -> bool:
        """Whether its result may wait for others."""
        ...

    async def carry_out(self) -> None:
        """On the other loop; keeps its own result and never raises."""
        ...

    def bring_home(self) -> None:
        """On the loop it came from, when it is carried out."""
        ...

    def tell_begun(self) -> bool:
        """On the loop it came from, if it was handed over early: False as long as it has not begun."""
        ...


class LoopThread:
    """`async with LoopThread("name") as other: other.send(call)`; leaving cancels what still runs there."""

    def __init__(self, name: str, clock: Clock | None = None) -> None:
        """`clock`: for calls that wait for their instant, and of any thread."""
        self._name = name
        self._clock = clock or SystemClock()
        self._timers: TimerQueue[ThreadCall] = TimerQueue(self._clock, self._instant)
        self._early: list[ThreadCall] = []  # of the last moments: nobody may know yet that they have begun
        self._checking: asyncio.TimerHandle | None = None
        self._last_seen: Callable[[], None] | None = None
        self._crosses = self._crosses_back = self._sleeps_too_long = False
        self._prompt = False  # a result over there may not wait
        self._first_result = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._there: LoopWakeup | None = None
        self._outgoing: list[ThreadCall] = []
        self._waiting: deque[ThreadCall] = deque()  # over there; both threads use it, and the next one
        self._home_coming: deque[Callable[[], None]] = deque()
        self._at_work: dict[ThreadCall, asyncio.Task[None]] = {}
        self._worker: asyncio.Task[None] | None = None
        self._begun = False  # that one's first step; if it is still there afterwards, its call waits
        self._leaves = False  # the thread: its loop runs again as long as it does not

    # here

    def send(self, call: ThreadCall) -> None:
        """It leaves with all others of this pass of the loop."""
        self._outgoing.append(call)
        if not self._crosses:
            self._cross_soon()

    def send_early(self, call: ThreadCall, at: float) -> None:
        """It is carried out at this monotonic instant."""
        self._early.append(call)
        if self._timers.add(at, call):
            self._sleeps_too_long = True
        if self._checking is None:
            self._checking = self._home.call_later(CHECK, self._check)
        self._cross_soon()

    def take_back(self, call: ThreadCall) -> bool:
        """Whether it has not begun; then it will not. Whoever takes it out of where it waits has it, which is one step
        under the interpreter's lock. (In between two of these places it is nowhere to be found: then it may begin.)"""
        return self._timers.take_back(call) or _taken(self._outgoing, call) or _taken(self._waiting, call)

    def fetch(self) -> None:
        """Bring home what is carried out by now."""
        try:
            self._bring_home()
        except Exception as error:  # of another one's, which is nothing to whoever asks
            report = {"message": "could not process the result of a function call", "exception": error}
            self._home.call_exception_handler(report)

    def cancel(self, call: ThreadCall) -> None:
        """If it has begun, over there."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._cancel, call)

    def send_from_thread(self, call: ThreadCall) -> None:
        self._waiting.append(call)
        self._over_there.call_soon_threadsafe(self._arrive)

    def say(self, what: Callable[[], None]) -> None:
        """From any thread, also when it is over: `what` is called at home, before whatever is carried out from now on
        comes there."""
        self._home_coming.append(what)
        if not self._home.is_closed():
            self._home.call_soon_threadsafe(self._bring_home)

    def _cross_soon(self) -> None:
        if not self._crosses:
            self._crosses = True
            self._home.call_soon(self._cross)

    def _cross(self) -> None:
        self._crosses = False
        leaving, self._outgoing = self._outgoing, []
        sleeps_too_long, self._sleeps_too_long = self._sleeps_too_long, False
        if self._there is None:
            return
        if leaving or sleeps_too_long:
            self._waiting.extend(leaving)
            self._there.wake()
        if not leaving:
            self._bring_home()  # while we are awake: what is handed over early comes as often as results may wait

    def _check(self) -> None:
        self._checking = None
        first = self._home_coming[0] if self._home_coming else None
        if first is not None and first is self._last_seen:
            self.fetch()  # whoever should have woken us is kept from it
        self._last_seen = first
        self._early = [call for call in self._early if not call.tell_begun()]
        if self._early or first is not None:
            self._checking = self._home.call_later(CHECK, self._check)

    def _bring_home(self) -> None:
        try:
            while self._home_coming:
                self._home_coming.popleft()()
        finally:
            if self._home_coming:  # one of them failed: the others must not wait for the next wake-up
                self._home.call_soon(self._bring_home)

    @property
    def _over_there(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None, "not entered"
        return self._loop

    # over there

    def _arrive(self) -> None:
        self._instant()

    def _instant(self) -> None:
        self._waiting.extend(self._timers.due())
        if self._worker is None or self._begun:
            self._take_over()
        else:
            self._take_over_soon()

    def _take_over(self) -> None:
        """Who is still at work has a call that waits, and leaves after it; somebody else takes the rest."""
        self._worker = None
        if not self._waiting:
            self._cross_back()
            return
        self._begun = False
        self._worker = asyncio.Task(self._work(), loop=self._over_there, name=self._name)  # a new name takes 2 µs
        if len(self._waiting) > 1:
            self._take_over_soon()

    def _take_over_soon(self) -> None:
        """Right after the worker's first step."""
        self._over_there.call_soon(self._take_over)

    async def _work(self) -> None:
        me = self._worker
        assert me is not None
        self._begun = True
        for _ in range(TOGETHER):
            if not self._waiting:
                break
            try:
                call = self._waiting.popleft()
            except IndexError:  # the last one was just taken back
                break
            before = copy_context() if self._waiting else None
            self._at_work[call] = me
            try:
                await call.carry_out()
            finally:
                del self._at_work[call]
            self._done(call)
            # The next call must find the task as if it were new: not waited in, not cancelled, nothing left in it.
            if before is None or self._worker is not me or me.cancelling() or not _unchanged(before):
                break
        if self._worker is me:
            self._worker = None
        if not self._at_work:
            self._cross_back()
        elif not self._crosses_back:  # others may end in this pass too
            self._crosses_back = True
            self._over_there.call_soon(self._cross_back)

    def _cancel(self, call: ThreadCall) -> None:
        task = self._at_work.get(call)
        if task is not None:
            task.cancel()

    def _done(self, call: ThreadCall) -> None:
        """It can be fetched from now on."""
        if not call.may_wait():
            self._prompt = True
        elif not self._home_coming:
            self._first_result = self._clock.monotonic()
        self._home_coming.append(call.bring_home)

    def _cross_back(self) -> None:
        """Wake who is at home, if there is reason to."""
        self._crosses_back = False
        if self._home_coming and not self._may_wait():
            self._back.wake()
        self._prompt = False

    def _may_wait(self) -> bool:
        """For another result that is about to come. Each instant asks again, whatever became of its call."""
        if self._prompt or len(self._home_coming) >= GATHER:
            return False
        return self._timers.wakes_at <= self._first_result + GATHER_SECONDS

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """A function may stop the loop that it finds itself on, and SystemExit in a task that it has made ends the loop
        as well. All others are on it, too, and those to come."""
        while not self._leaves and not loop.is_closed():
            try:
                loop.run_forever()
            except BaseException as error:
                report = {"message": "a task or callback of a function tried to end its thread", "exception": error}
                loop.call_exception_handler(report)

    def _leave(self) -> None:
        self._leaves = True
        self._over_there.stop()

    # opening and closing

    async def __aenter__(self) -> Self:
        self._home = asyncio.get_running_loop()
        self._loop = _like(self._home)
        self._leaves = False
        self._there, self._back = LoopWakeup(self._loop, self._arrive), LoopWakeup(self._home, self._bring_home)
        self._thread = threading.Thread(target=self._run, args=(self._loop,), name=self._name, daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._loop is None or self._there is None:
            return
        if self._checking is not None:
            self._checking.cancel()
            self._checking = None
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_cancel_rest(), self._loop))
        self._loop.call_soon_threadsafe(self._leave)
        await asyncio.to_thread(self._thread.join)
        self._timers.close()
        self._there.close()
        self._back.close()
        self._loop.close()
        self._there = self._loop = None
        self._bring_home()  # what came after the last wake-up that was heard


def _like(home: asyncio.AbstractEventLoop) -> asyncio.AbstractEventLoop:
    """uvloop, if that is what the program chose to run on: its passes cost half as much."""
    chosen = type(home)
    return chosen() if chosen.__module__ == "uvloop" else asyncio.new_event_loop()


def _taken(waiting: list[ThreadCall] | deque[ThreadCall], call: ThreadCall) -> bool:
    try:
        waiting.remove(call)
    except ValueError:
        return False
    return True


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
