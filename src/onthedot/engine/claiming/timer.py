"""The Timer: the node's one clock. Sleeps until the next due instant, a hint, or the time to look, and then calls the
Dispatcher. Nobody calls the Timer: it reads the due heap, the lease and the look times, and a signal that each of them
sets ends its sleep."""

from __future__ import annotations

import asyncio
import random
from typing import Protocol

from onthedot.clock import Alarm, Clock
from onthedot.engine.claiming.due_heap import DueHeap
from onthedot.engine.look_times import LookTimes
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.lease import Lease
from onthedot.engine.tuning import INSTANT

__all__ = ["Timed", "Timer"]


class Timed(Protocol):
    """What the Timer calls: the Dispatcher. By a call and not by a message, because each turn of the loop between the
    instant and the firing is lateness."""

    def tick(self) -> None:
        """An instant of the heap has come."""

    def look(self) -> None:
        """It is time to look into the store."""


class Timer:
    """Polls at gaps of `poll` seconds or up to a fifth less, at random: nodes that start together must not look
    together. (When it was up to a half, every other look was a poll between two claims that found nothing.)
    `granularity` is the longest sleep."""

    def __init__(
        self,
        *,
        clock: Clock,
        time: DatabaseClock,
        due_heap: DueHeap,
        lease: Lease,
        look_times: LookTimes,
        dispatcher: Timed,
        rng: random.Random,
        poll: float,
        granularity: float,
    ) -> None:
        self._clock = clock
        self._time = time
        self._due_heap = due_heap
        self._lease = lease
        self._look_times = look_times
        self._wake = look_times.wake
        self._dispatcher = dispatcher
        self._alarm: Alarm | None = None
        self._error: BaseException | None = None
        self._rng = rng
        self._poll = poll
        self._granularity = granularity

    async def step(self) -> None:
        """Until something wakes it; then whatever has come. Waking early (a loop without a timer of the kernel
        rounds to the millisecond) is no reason to call anybody, and the next step sleeps the rest."""
        sleep = self._until_next()
        if sleep > 0:
            if self._alarm is None:
                self._alarm = self._clock.alarm(self._alarm_went_off)
            self._alarm.set(sleep)
            try:
                await self._wake.wait()
            except asyncio.CancelledError:
                self.close()  # told to end: nothing fires any more
                raise
            if self._error is not None:
                raise self._error
        else:
            await self._clock.sleep(0)  # whoever was called last must have its turn before the next
        self._call_dispatcher()

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.close()
            self._alarm = None

    def _alarm_went_off(self) -> None:
        """An instant has come, and nothing else: call on the alarm's own turn and set it anew, while the loop of steps
        sleeps on. Waking that for each firing took another pass of the event loop."""
        try:
            self._call_dispatcher()
            sleep = self._until_next()
        except BaseException as error:  # nobody up there would hear it
            self._error = error
            self._wake.set()
            return
        if sleep > 0 and self._alarm is not None:
            self._alarm.set(sleep)
        else:
            self._wake.set()

    def _until_next(self) -> float:
        now = self._clock.monotonic()
        db_us = self._time.at_us(now) if self._time.known else None
        sleep = min(self._granularity, self._look_times.seconds_left(now, db_us))
        head = self._due_heap.head
        if head is not None and db_us is not None and self._lease.may_start(now):
            sleep = min(sleep, (head * 1000 - db_us) / 1e6)
        return sleep if sleep > INSTANT else 0.0

    def _call_dispatcher(self) -> None:
        now = self._clock.monotonic()
        db_us = self._time.at_us(now) if self._time.known else None
        head = self._due_heap.head
        if head is not None and db_us is not None and head * 1000 <= db_us and self._lease.may_start(now):
            self._dispatcher.tick()
        if self._look_times.due(now, db_us):
            self._look_times.looked(now, db_us, self._poll * self._rng.uniform(0.8, 1.0))
            self._dispatcher.look()
