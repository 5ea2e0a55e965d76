"""When a result is written: alone at once, or together with those that are about to come.

A statement and its commit cost the node and the database more than what is in it: after a rest of 10 ms one result took
773 µs of both together, two took 928 and three 955. But what was answered and is not yet written is sent again if the
process is killed. So one waits for others only if something fires within its patience, and no longer than that; and how
many wait at once is bounded too, whatever the rate.
"""

from __future__ import annotations

from typing import Protocol

from onthedot.engine.messages import Return
from onthedot.model.target import target_type
from onthedot.plan import laned
from onthedot.store import Finished

__all__ = ["INSIDE", "OUTSIDE", "TOGETHER", "BatchWindow"]

OUTSIDE = 0.005
"""Seconds that a result of what is called outside (a webhook, a worker process, a command) waits for one other. At 60 a
second, at random, that is 0.6 ms on average, or one run in 27 kills -9 that is repeated for it; 12 ms were one in six,
when a kill at a named point cost 1.7 runs (docs/reliability.md) and a repeat is what users mind most."""
INSIDE = 0.075
"""Seconds that a result of a function of this very process waits for others, TOGETHER with it at most. At 100 a second,
evenly, that is 35 ms on average: three or four functions run again if this process, of which they are part, is killed.
With five in 45 ms a firing cost 787 and 699 µs of both where PgQueuer's, which waits for 100 ms, cost 774 and 705."""
TOGETHER = 8


class Expected(Protocol):
    def __call__(self) -> float | None:
        """Seconds until the next run fires; None: none is in sight."""
        ...


class BatchWindow:
    """`inside`: the kinds of target that run in this process."""

    def __init__(self, inside: frozenset[str], expected: Expected) -> None:
        self._inside = inside
        self._expected = expected
        self._gathered = 0

    def patience(self, first: Finished | Return) -> float:
        """Seconds that it may wait for others. None is waited for unless something is about to fire."""
        self._gathered = 1
        longest = self._longest(first)
        if not longest:
            return 0.0
        soon = self._expected()
        return longest if soon is not None and soon < longest else 0.0

    def enough(self, item: Finished | Return) -> bool:
        """Asked about each that comes meanwhile, in their order."""
        self._gathered += 1
        return self._gathered >= TOGETHER or self._longest(item) < INSIDE

    def _longest(self, item: Finished | Return) -> float:
        """What is given back may be fired by another, and who holds a lane keeps others waiting: these at once."""
        if isinstance(item, Return) or laned(item.run.spec.policy):
            return 0.0
        return INSIDE if target_type(item.run.spec.target) in self._inside else OUTSIDE
