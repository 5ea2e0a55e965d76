"""When to look into the store next: a value that many write and one reads.

The Timer sleeps until then. Whoever learns something (a claim saw the next run, a retry was written, a hint came)
writes it down here, which wakes the Timer; nobody needs to know the Timer for it.
"""

from __future__ import annotations

import msgspec

from onthedot.clock import Clock
from onthedot.engine.mailbox import Signal
from onthedot.engine.tuning import INSTANT, LOOK_GAP

__all__ = ["LookTimes", "NextLook"]

_RETRY = ""


class NextLook(msgspec.Struct, frozen=True):
    """When a claim is worth it again, as far as the last one can tell: within so many seconds, or not before this
    instant of the database's clock (ms)."""

    within: float | None = None
    at_ms: int | None = None


class LookTimes:
    def __init__(self, clock: Clock, *, adopts: bool = False) -> None:
        """`adopts`: open runs are worth a look."""
        self.wake = Signal()
        """Something has changed for the Timer: here, in the heap, or of the lease."""
        self.no_claim_before = 0.0  # on the monotonic clock
        self.latest = clock.monotonic()  # on the monotonic clock: the first look is at once
        self.adoptable = adopts  # there may be open runs
        self._clock = clock
        self._adopts = adopts
        self._asked = False
        self._earliest = self.latest  # … for looks that were asked for or expected
        self._expected_of: dict[str, int] = {}
        self._expected: int | None = None  # the first of them

    def ask(self) -> None:
        """As soon as possible: a hint that something is due."""
        self._asked = True
        self.wake.set()

    def open_seen(self) -> None:
        """There are open runs: work that goes on, and no node has it."""
        if self._adopts:
            self.adoptable = True
            self.ask()

    def look_within(self, seconds: float) -> None:
        """At the latest so soon, whatever the poll gap says."""
        at = self._clock.monotonic() + seconds
        if at < self.latest:
            self.latest = at
            self.wake.set()

    def pause(self, seconds: float) -> None:
        """No claim for so long, and a look right after."""
        self.no_claim_before = max(self.no_claim_before, self._clock.monotonic() + seconds)
        self.look_within(seconds)

    def retry_at(self, at_ms: int) -> None:
        """A retry can be claimed at this instant of the database's clock."""
        if at_ms < self._expected_of.get(_RETRY, at_ms + 1):
            self._expect(_RETRY, at_ms)

    def after_claim(self, pool: str, next_look: NextLook) -> None:
        """A claim for this pool that saw all that is pending makes void what the one before it said. (With both, each
        second's runs were claimed in two.)"""
        if next_look.at_ms is not None:
            self._expect(pool, next_look.at_ms)
        if next_look.within is not None:
            self.look_within(next_look.within)

    def _expect(self, what: str, at_ms: int) -> None:
        before = self._expected
        self._expected_of[what] = at_ms
        self._expected = min(self._expected_of.values())
        if before is None or self._expected < before:
            self.wake.set()

    # for the Timer; `now` is monotonic, `db_us` the same instant of the database's clock, None: not known yet

    def seconds_left(self, now: float, db_us: int | None) -> float:
        left = self.latest - now
        if self._asked:
            left = min(left, self._earliest - now)
        if self._expected is not None and db_us is not None:
            left = min(left, max((self._expected * 1000 - db_us) / 1e6, self._earliest - now))
        return left

    def due(self, now: float, db_us: int | None) -> bool:
        return self.latest - now <= INSTANT or self._is_wanted(now, db_us)

    def looked(self, now: float, db_us: int | None, gap: float) -> None:
        """It is done now; the next look is at the latest `gap` seconds away."""
        if self._is_wanted(now, db_us):
            self._earliest = now + LOOK_GAP
        self._asked = False
        if db_us is not None and self._expected is not None and self._expected * 1000 <= db_us:
            self._expected_of = {what: at for what, at in self._expected_of.items() if at * 1000 > db_us}
            self._expected = min(self._expected_of.values(), default=None)
        self.latest = now + gap

    def _is_wanted(self, now: float, db_us: int | None) -> bool:
        expected = db_us is not None and self._expected is not None and self._expected * 1000 <= db_us
        return (self._asked or expected) and self._earliest - now <= INSTANT
