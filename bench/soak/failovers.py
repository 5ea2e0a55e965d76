"""How long a failover took: the databases' own time, and what the scheduler needed beyond it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.soak.calls import Call, Window

__all__ = ["ALLOWED", "HEAD", "IN_TIME", "Fault", "Recovery", "recovery"]

ALLOWED = 10.0
"""Seconds beyond the lease that a node may need once the database can be written again."""

IN_TIME = 1.0
"""A call that is less late than this is in time: what waited has been worked off."""


@dataclass(frozen=True)
class Fault:
    """`gone`: when the primary went away. `writable`: when the first write was confirmed by the one after it."""

    what: str
    before: str
    after: str
    gone: float
    writable: float
    paired: float  # the old one followed as synchronous standby


@dataclass(frozen=True)
class Recovery:
    """`first`: when the first run was called that cannot have been claimed from the old primary. None: never."""

    fault: Fault
    first: float | None
    silence: float
    caught_up: float | None
    lease: float

    @property
    def own(self) -> float:
        """Seconds that the databases needed by themselves."""
        return self.fault.writable - self.fault.gone

    @property
    def gap(self) -> float | None:
        return None if self.first is None else self.first - self.fault.gone

    @property
    def beyond(self) -> float | None:
        """What the scheduler needed beyond the databases' own time and its lease; wanted: at most `ALLOWED`."""
        return None if self.gap is None else self.gap - self.own - self.lease

    def window(self) -> Window:
        """Calls that nobody could record: results are kept for as long as the lease before the primary went, and are
        written within a lease after the first call from the new one."""
        back = self.fault.writable if self.first is None else max(self.first, self.fault.writable)
        return Window(self.fault.gone - self.lease, back + self.lease)

    def row(self, began: float) -> list[object]:
        return [
            self.fault.what,
            f"{self.fault.before} → {self.fault.after}",
            self.fault.gone - began,
            self.own,
            "never" if self.first is None else self.first - began,
            "never" if self.gap is None else self.gap,
            self.own + self.lease + ALLOWED,
            self.silence,
            "never" if self.caught_up is None else self.caught_up,
            self.fault.paired - self.fault.gone,
        ]


HEAD = (
    "fault",
    "primary",
    "gone at s",
    "Patroni's own s",
    "first call at s",
    "gap s",
    "gap allowed s",
    "longest silence s",
    "in time again after s",
    "pair again after s",
)


def recovery(fault: Fault, calls: Iterable[Call], until: float, *, lookahead: float, lease: float) -> Recovery:
    """`until`: when the next fault begins, or the end. A run that is due `lookahead` after the primary went, or later,
    can only have been claimed from the new one."""
    near = sorted(call for call in calls if fault.gone - IN_TIME <= call.at < until)
    fresh = (fault.gone + lookahead) * 1000
    first = next((call.at for call in near if call.at >= fault.gone and call.slot > fresh), None)
    late = [call.at for call in near if call.at >= fault.gone and call.at - call.slot / 1000 > IN_TIME]
    caught_up = None if first is None else max([first, *late]) - fault.gone
    return Recovery(fault, first, _silence([call.at for call in near]), caught_up, lease)


def _silence(times: Sequence[float]) -> float:
    return max((after - before for before, after in pairwise(times)), default=0.0)
