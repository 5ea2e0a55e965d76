"""How long this node may trust that nobody took its runs.

Others declare a node lost when its beat stood still for one lease on their clock. They saw the beat at the earliest
when we sent it, so nothing is started later than lease − 1 s after *sending* the last good one: counted from the
answer, a slow network would let both sides fire.

And for how long it may trust that nobody wants them back: there may be orders that we have not read. A node fires what
it holds for as long as it may have held it when it last read them (LOOKAHEAD); one that was frozen reads them first.
"""

from __future__ import annotations

from collections.abc import Callable

from onthedot.clock import Clock

__all__ = ["MARGIN", "Lease", "fresh_for"]

MARGIN = 1.0
_NEWS_MISSED = 2.0  # seconds: several looks for orders in a row may fail
_WAY = 0.25  # seconds that a question may take


def fresh_for(lookahead: float) -> float:
    """Seconds after the question in which what was read of orders holds."""
    return max(lookahead, _NEWS_MISSED) + _WAY


class Lease:
    def __init__(
        self,
        clock: Clock,
        seconds: float,
        renewed: Callable[[], None] = lambda: None,
        *,
        fresh: float = float("inf"),
    ) -> None:
        """`renewed` is told when runs may be started again. `fresh`: see `fresh_for`."""
        self._clock = clock
        self._fresh = fresh
        self._heard: float | None = None
        self._trusted = max(seconds - MARGIN, seconds / 2)
        self._sent: float | None = None
        self._told = renewed
        self._refused = False

    def renew(self, sent: float) -> None:
        """A beat that was sent at this monotonic instant succeeded."""
        self._sent = sent
        if self._heard is None:
            self.heard(sent)
        self._tell()

    def heard(self, sent: float) -> None:
        """All orders that there were at this monotonic instant or later have been carried out."""
        if self._heard is None or sent > self._heard:
            self._heard = sent
        self._tell()

    def _tell(self) -> None:
        if self._refused:
            self._refused = False
            self._told()

    def left(self) -> float:
        """Seconds in which nobody can have taken what we run; 0 or less: somebody may."""
        return -1.0 if self._sent is None else self._sent + self._trusted - self._clock.monotonic()

    def may_start(self, now: float | None = None) -> bool:
        """`now`: for who has just looked at the monotonic clock."""
        if now is None:
            now = self._clock.monotonic()
        sent, heard = self._sent, self._heard
        if sent is not None and heard is not None and now < sent + self._trusted and now < heard + self._fresh:
            return True
        self._refused = True
        return False
