"""The only module of ours that reads the wall clock of this machine (a test looks). The engine, the store and the
service take a `Clock`, which tests replace. Libraries read it themselves, for log lines and for the signatures of AWS.

Wall time is whole milliseconds since the Unix epoch, UTC, everywhere in On the Dot. Monotonic time is in float seconds
and is used for waiting and for leases, never for a date. For short I/O timeouts and for measuring how long something
took, targets, the HTTP protocol and telemetry also use the monotonic clock and the timers of the event loop directly.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from onthedot.timerfd import KernelTimer

__all__ = ["Alarm", "Clock", "FakeClock", "SystemClock"]


class Alarm(Protocol):
    """Rings once for each time it is set; setting it anew takes the place of what was set before."""

    def set(self, seconds: float) -> None: ...

    def close(self) -> None: ...


class Clock(Protocol):
    """What the engine knows of time."""

    def now_ms(self) -> int:
        """Wall time, UTC, in whole milliseconds since the epoch (rounded down: never ahead of the truth)."""
        ...

    def now_us(self) -> int:
        """The same in whole microseconds: what a store that is part of this process says when it is asked the time."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never jumps."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[object]:
        """`async with clock.timeout(3):` raises TimeoutError inside when the time is up. None: never."""
        ...

    def alarm(self, callback: Callable[[], None]) -> Alarm:
        """What calls `callback` on the running loop, as precisely as the machine can. For who waits all the time: it
        costs no task, no exception and no future."""
        ...


class SystemClock:
    """The machine's clocks and the running event loop's timers."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def now_us(self) -> int:
        return time.time_ns() // 1000

    monotonic = staticmethod(time.monotonic)  # no frame around it: the engine asks five times a run

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(seconds)

    def alarm(self, callback: Callable[[], None]) -> Alarm:
        try:
            return KernelTimer(callback)
        except (NotImplementedError, OSError):  # another system, or a loop without file descriptors
            return _LoopAlarm(callback)


class _LoopAlarm:
    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback
        self._handle: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        self.close()
        self._handle = asyncio.get_running_loop().call_later(seconds, self._callback)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None


class FakeClock:
    """A clock that a test turns by hand: `await clock.advance(1.5)` wakes each sleeper whose time has come, in turn."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = now_ms
        self._elapsed = 0.0
        self._wall_shift_ms = 0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def now_ms(self) -> int:
        return self.now_us() // 1000

    def now_us(self) -> int:
        return (self._start_ms + self._wall_shift_ms) * 1000 + int(round(self._elapsed * 1e6, 3))

    def monotonic(self) -> float:
        return self._elapsed

    def step_wall(self, delta_ms: int) -> None:
        """Somebody set the machine's date: wall time jumps, monotonic time does not."""
        self._wall_shift_ms += delta_ms

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), woken))
        await woken

    @asynccontextmanager
    async def timeout(self, seconds: float | None) -> AsyncIterator[None]:
        async with asyncio.timeout(None) as scope:
            alarm = None
            if seconds is not None:
                alarm = asyncio.ensure_future(self._expire(scope, seconds))
            try:
                yield
            finally:
                if alarm is not None:
                    alarm.cancel()

    async def _expire(self, scope: asyncio.Timeout, seconds: float) -> None:
        await self.sleep(seconds)
        scope.reschedule(asyncio.get_running_loop().time())

    def alarm(self, callback: Callable[[], None]) -> Alarm:
        return _FakeAlarm(self, callback)

    def call_in(self, seconds: float, callback: Callable[[], None]) -> asyncio.Future[None]:
        """Cancel what is returned, and it is not called."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        woken.add_done_callback(lambda done: None if done.cancelled() else callback())
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), woken))
        return woken

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass, waking sleepers one by one and letting everything that they start settle."""
        target = self._elapsed + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= target:
            when, _, woken = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, when)
            if not woken.done():
                woken.set_result(None)
                await self.settle()
        self._elapsed = target
        await self.settle()

    async def settle(self, rounds: int = 20) -> None:
        """Run what is ready to run. Bounded: a task that never waits can't hang a test."""
        for _ in range(rounds):
            await asyncio.sleep(0)


class _FakeAlarm:
    def __init__(self, clock: FakeClock, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._callback = callback
        self._set: asyncio.Future[None] | None = None

    def set(self, seconds: float) -> None:
        self.close()
        self._set = self._clock.call_in(seconds, self._callback)

    def close(self) -> None:
        if self._set is not None:
            self._set.cancel()
            self._set = None
