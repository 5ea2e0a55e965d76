"""A circuit breaker: whether calls to a destination are worth it, by how the last ones ended. Pure: it has no clock.

closed      calls go out; FAILURES failed ones in a row open it.
open        none goes out, but for one probe every PROBE_EVERY seconds.
half open   a probe is under way. What ends well closes the breaker, the probe or a call that was begun before.

A call that began before the breaker last closed says nothing about the destination as it is now if it fails: with 250
calls that hang, the first probe that went well would else be followed by 250 time-outs, and the breaker be open again.
"""

from __future__ import annotations

from typing import Literal

__all__ = ["FAILURES", "IDLE", "PROBE_EVERY", "Breaker", "BreakerState"]

FAILURES = 10
"""In a row, until it opens."""
PROBE_EVERY = 10.0
"""Seconds from one probe to the next at least, and from the opening to the first."""

IDLE = 60.0
"""Seconds after which an open breaker that had nothing to probe with is forgotten: nobody knows any more."""

BreakerState = Literal["closed", "open", "half_open"]


class Breaker:
    """Instants are seconds of a clock that is never set back."""

    __slots__ = ("_closed_at", "_probe", "_probe_at", "failures", "probing", "since")

    def __init__(self) -> None:
        self.failures = 0  # in a row
        self.since: float | None = None  # open since then; None: closed
        self.probing = False
        self._probe = 0  # the number of the last one
        self._probe_at = 0.0
        self._closed_at: float | None = None

    @property
    def state(self) -> BreakerState:
        if self.since is None:
            return "closed"
        return "half_open" if self.probing else "open"

    @property
    def next_probe(self) -> float | None:
        """From when on a probe may go out; None: it is closed, or one is under way."""
        return None if self.since is None or self.probing else self._probe_at

    def is_idle(self, now: float) -> bool:
        """Whether a probe could have gone out long ago, and none did."""
        return self.since is not None and not self.probing and now >= self._probe_at + IDLE

    def admits(self, now: float) -> bool:
        """Whether a call may go out."""
        return self.since is None or (not self.probing and now >= self._probe_at)

    def sent(self, now: float) -> int:
        """A call that was admitted goes out. The number to tell its end with: 0, unless it is a probe."""
        if self.since is None:
            return 0
        self.probing = True
        self._probe += 1
        self._probe_at = now + PROBE_EVERY
        return self._probe

    def failed(self, now: float, began: float, *, probe: int = 0) -> bool:
        """Whether that opened it."""
        self._ended(probe)
        if self._closed_at is not None and began < self._closed_at:
            return False
        self.failures += 1
        if self.since is not None or self.failures < FAILURES:
            return False
        self.since = now
        self._probe_at = now + PROBE_EVERY
        return True

    def succeeded(self, now: float) -> bool:
        """Whether that closed it."""
        self.failures = 0
        if self.since is None:
            return False
        self.since, self.probing, self._closed_at = None, False, now
        return True

    def undecided(self, now: float, *, probe: int = 0) -> None:
        """It was cancelled or given back: nobody knows. The next one may be the probe at once."""
        if self._ended(probe):
            self._probe_at = now

    def _ended(self, probe: int) -> bool:
        """Whether it is the probe that is waited for; one from before the breaker last closed is not."""
        if not (self.probing and probe and probe == self._probe):
            return False
        self.probing = False
        return True
