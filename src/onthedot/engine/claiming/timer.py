"""The Timer: the node's one clock. Sleeps until the next due instant, a hint, or the time to look, and says so."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from onthedot.clock import Alarm, Clock
from onthedot.engine.claiming.due_heap import DueHeap
from onthedot.engine.mailbox import Mailbox, Signal
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.lease import Lease
from onthedot.engine.messages import LOOK, DispatcherMessage

__all__ = ["MIN_GAP", "Timer"]

MIN_GAP = 0.01
"""Hints and expected instants make it look at once, but no closer together than this: a stream of new timers would
otherwise be claimed one by one."""
_INSTANT = 1e-6  # floating point: a sleep may end a hair before the sum it was computed from


class Timer:
    """Polls at gaps of `poll` seconds or up to a fifth less, at random: nodes that start together must not look
    together. (When it was up to a half, every other look was a poll between two claims that found nothing.)
    `granularity` is the longest sleep. `tick` is called when an instant has come: at once and on the Timer's own turn,
    not by message, because each turn of the loop between the instant and the firing is lateness."""

    def __init__(
        self,
        *,
        clock: Clock,
        time: DatabaseClock,
        due_heap: DueHeap,
        lease: Lease,
        scheduler: Mailbox[DispatcherMessage],
        tick: Callable[[], None],
        rng: random.Random,
        poll: float,
        granularity: float,
    ) -> None:
        self.hints = Signal()
        self._clock = clock
        self._time = time
        self._due_heap = due_heap
        self._lease = lease
        self._scheduler = scheduler
        self._tick = tick
        self._alarm: Alarm | None = None
        self._error: BaseException | None = None
        self._rng = rng
        self._poll = poll
        self._granularity = granularity
        self._next_look = clock.monotonic()
        self._may_look = clock.monotonic()
        self._expectations: dict[str, int] = {}
        self._expected: int | None = None  # the first of them
        self._look_asked = False

    def wake(self) -> None:
        """The heap has an earlier head, or starting is allowed again: compute the sleep anew."""
        self.hints.ring()

    def look(self) -> None:
        """A hint that something is due soon, or room that came free."""
        self._look_asked = True
        self.hints.ring()

    def look_within(self, seconds: float) -> None:
        """Look at the latest so soon, whatever the poll gap says."""
        at = self._clock.monotonic() + seconds
        if at < self._next_look:
            self._next_look = at
            self.hints.ring()

    def expect(self, at_ms: int) -> None:
        """Something will be claimable at this instant of the database's clock (a retry)."""
        if at_ms < self._expectations.get("", at_ms + 1):
            self._expect("", at_ms)

    def expect_next(self, pool: str, at_ms: int) -> None:
        """A claim for this pool has seen all that is pending: what the one before it said is void. (With both, each
        second's runs were claimed in two.)"""
        self._expect(pool, at_ms)

    def _expect(self, what: str, at_ms: int) -> None:
        before = self._expected
        self._expectations[what] = at_ms
        self._expected = min(self._expectations.values())
        if before is None or self._expected < before:
            self.hints.ring()

    def next_tick(self) -> float | None:
        """Seconds until the first instant in the heap; None: there is none, or the time is not known."""
        head = self._due_heap.head
        return None if head is None or not self._time.known else self._time.seconds_until(head)

    async def step(self) -> None:
        """Until the next hint; and a Look if there is reason for it. Waking early (a loop without a timer of the kernel
        rounds to the millisecond) gives no reason, and the next step sleeps the rest."""
        sleep = self._until_next()
        if sleep > 0:
            if self._alarm is None:
                self._alarm = self._clock.alarm(self._rings)
            self._alarm.set(sleep)
            try:
                await self.hints.wait()
            except asyncio.CancelledError:
                self.close()  # told to end: nothing fires any more
                raise
            if self._error is not None:
                raise self._error
        else:
            await self._clock.sleep(0)  # whoever got the last word must have its turn before the next
        self._speak()

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.close()
            self._alarm = None

    def _rings(self) -> None:
        """An instant has come, and nothing else: speak on the alarm's own turn and set it anew, while the loop of steps
        sleeps on. Waking that for each firing took another pass of the event loop."""
        try:
            self._speak()
            sleep = self._until_next()
        except BaseException as error:  # nobody up there would hear it
            self._error = error
            self.hints.ring()
            return
        if sleep > 0 and self._alarm is not None:
            self._alarm.set(sleep)
        else:
            self.hints.ring()

    def _until_next(self) -> float:
        now = self._clock.monotonic()
        sleep = min(self._next_look - now, self._granularity)
        if self._look_asked:
            sleep = min(sleep, self._may_look - now)
        if self._time.known:
            at_us = self._time.at_us(now)
            head = self._due_heap.head
            if head is not None and self._lease.may_start(now):
                sleep = min(sleep, (head * 1000 - at_us) / 1e6)
            if self._expected is not None:
                sleep = min(sleep, max((self._expected * 1000 - at_us) / 1e6, self._may_look - now))
        return sleep if sleep > _INSTANT else 0.0

    def _speak(self) -> None:
        now = self._clock.monotonic()
        at_us = self._time.at_us(now) if self._time.known else 0  # whose first instant nothing is before
        expected = self._expected is not None and self._expected * 1000 <= at_us
        asked = (self._look_asked or expected) and self._may_look - now <= _INSTANT
        if asked or self._next_look - now <= _INSTANT:
            self._look_asked = False
            if expected:
                self._expectations = {what: at for what, at in self._expectations.items() if at * 1000 > at_us}
                self._expected = min(self._expectations.values(), default=None)
            self._next_look = now + self._poll * self._rng.uniform(0.8, 1.0)
            if asked:
                self._may_look = now + MIN_GAP
            self._scheduler.merge(LOOK)
        head = self._due_heap.head
        if head is not None and head * 1000 <= at_us and self._lease.may_start(now):
            self._tick()
