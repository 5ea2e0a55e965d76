"""How long this node may trust that nobody took its runs.

Others declare a node lost when its beat stood still for one lease on their clock. They saw the beat at the earliest
when we sent it, so nothing is started later than lease − 1 s after *sending* the last good one: counted from the
answer, a slow network would let both sides fire.
"""

from __future__ import annotations

from collections.abc import Callable

from onthedot.clock import Clock

__all__ = ["MARGIN", "Lease"]

MARGIN = 1.0


class Lease:
    def __init__(self, clock: Clock, seconds: float, renewed: Callable[[], None] = lambda: None) -> None:
        self._clock = clock
        self._trusted = max(seconds - MARGIN, seconds / 2)
        self._sent: float | None = None
        self._told = renewed
        self._refused = False

    def renew(self, sent: float) -> None:
        """A beat that was sent at this monotonic instant succeeded."""
        self._sent = sent
        if self._refused:
            self._refused = False
            self._told()

    def left(self) -> float:
        """Seconds in which nobody can have taken what we run; 0 or less: somebody may."""
        return -1.0 if self._sent is None else self._sent + self._trusted - self._clock.monotonic()

    def may_start(self, now: float | None = None) -> bool:
        """`now`: for who has just looked at the monotonic clock."""
        if self._sent is not None and (self._clock.monotonic() if now is None else now) < self._sent + self._trusted:
            return True
        self._refused = True
        return False
