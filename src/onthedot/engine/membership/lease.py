"""How long this node may trust that nobody took its runs.

Others declare a node lost when its beat stood still for one lease on their clock. They saw the beat at the earliest
when we sent it, so nothing is started later than lease − 1 s after *sending* the last good one: counted from the
answer, a slow network would let both sides fire.

And for how long it may trust that nobody wants them back: there may be orders that we have not read. A node fires what
it holds for as long as it may have held it when it last read them (LOOKAHEAD); one that was frozen reads them first.
"""

from __future__ import annotations

from onthedot.clock import Clock
from onthedot.engine.mailbox import Signal
from onthedot.engine.tuning import lease_trusted

__all__ = ["Lease"]


class Lease:
    def __init__(
        self,
        clock: Clock,
        seconds: float,
        *,
        wake: Signal | None = None,
        orders_valid: float = float("inf"),
    ) -> None:
        """`wake` is set when runs may be started again. `orders_valid`: see `tuning`."""
        self._clock = clock
        self._orders_valid = orders_valid
        self._heard: float | None = None
        self._trusted = lease_trusted(seconds)
        self._sent: float | None = None
        self._wake = wake or Signal()
        self._refused = False

    def renew(self, sent: float) -> None:
        """A beat that was sent at this monotonic instant succeeded."""
        self._sent = sent
        if self._heard is None:
            self.heard(sent)
        self._wake_up()

    def heard(self, sent: float) -> None:
        """All orders that there were at this monotonic instant or later have been carried out."""
        if self._heard is None or sent > self._heard:
            self._heard = sent
        self._wake_up()

    def _wake_up(self) -> None:
        if self._refused:
            self._refused = False
            self._wake.set()

    def left(self) -> float:
        """Seconds in which nobody can have taken what we run; 0 or less: somebody may."""
        return -1.0 if self._sent is None else self._sent + self._trusted - self._clock.monotonic()

    def may_start(self, now: float | None = None) -> bool:
        """`now`: for who has just looked at the monotonic clock."""
        if now is None:
            now = self._clock.monotonic()
        sent, heard = self._sent, self._heard
        if sent is not None and heard is not None and now < sent + self._trusted and now < heard + self._orders_valid:
            return True
        self._refused = True
        return False
