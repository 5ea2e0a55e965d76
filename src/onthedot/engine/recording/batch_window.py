"""When a result is written: alone at once, or together with those that are about to come.

A statement and its commit cost the node and the database more than what is in it: after a rest of 10 ms one result took
773 µs of both together, two took 928 and three 955. But what was answered and is not yet written is sent again if the
process is killed. So one waits for others only if something fires within its time, and no longer than that; and how
many wait at once is bounded too, whatever the rate.
"""

from __future__ import annotations

from typing import Protocol

from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.messages import RecorderMessage
from onthedot.engine.tuning import INSIDE_TOGETHER, INSIDE_WAIT, OUTSIDE_WAIT
from onthedot.plan import laned
from onthedot.store import Finished

__all__ = ["BatchWindow", "Upcoming"]


class Upcoming(Protocol):
    """The due heap, as far as it matters here."""

    @property
    def head(self) -> int | None:
        """The instant at which the next run fires, in ms of the database's clock; None: none is in sight."""


class BatchWindow:
    """`inside`: the kinds of target that run in this process."""

    def __init__(self, inside: frozenset[str], upcoming: Upcoming, time: DatabaseClock) -> None:
        self._inside = inside
        self._upcoming = upcoming
        self._time = time
        self._gathered = 0

    def seconds(self, first: RecorderMessage) -> float:
        """Seconds that it may wait for others. None is waited for unless something is about to fire."""
        self._gathered = 1
        longest = self._longest(first)
        if not longest:
            return 0.0
        head = self._upcoming.head
        if head is None or not self._time.known or self._time.seconds_until(head) >= longest:
            return 0.0
        return longest

    def enough(self, item: RecorderMessage) -> bool:
        """Asked about each that comes meanwhile, in their order."""
        self._gathered += 1
        return self._gathered >= INSIDE_TOGETHER or self._longest(item) < INSIDE_WAIT

    def _longest(self, item: RecorderMessage) -> float:
        """What is given back may be fired by another, and who holds a lane keeps others waiting: these at once."""
        if not isinstance(item, Finished) or laned(item.run.spec.policy):
            return 0.0
        return INSIDE_WAIT if item.run.spec.target.type in self._inside else OUTSIDE_WAIT
