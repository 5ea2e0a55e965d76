"""Slots that have a row already, and a schedule without them.

A job's cursor need not stand behind everything that was ever decided: a run of next January may be cancelled today, and
a clock that was ahead leaves firings behind that lie in the future. Such slots are named by their rows and passed over;
they say nothing about the slots before them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from operator import itemgetter

import msgspec

from onthedot.plan.slots import EXACT, Skipped
from onthedot.timing import Timetable

__all__ = ["NOTHING_TAKEN", "Free", "Taken", "free", "pieces"]

_FIRST = itemgetter(0)


class Taken(msgspec.Struct, frozen=True):
    """Ranges of slots (first, last), both included: a run of its own is a range of one. In order, not overlapping."""

    spans: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, spans: Iterable[tuple[int, int]]) -> Taken:
        merged: list[tuple[int, int]] = []
        for first, last in sorted(spans):
            if merged and first <= merged[-1][1]:
                merged[-1] = merged[-1][0], max(last, merged[-1][1])
            else:
                merged.append((first, last))
        return cls(tuple(merged))

    def __bool__(self) -> bool:
        return bool(self.spans)

    def covering(self, slot: int) -> tuple[int, int] | None:
        place = bisect_right(self.spans, slot, key=_FIRST) - 1
        return self.spans[place] if place >= 0 and slot <= self.spans[place][1] else None

    def within(self, first: int, last: int) -> list[tuple[int, int]]:
        """What of them lies in first … last, cut off there."""
        return [(max(low, first), min(high, last)) for low, high in self.spans if low <= last and high >= first]


NOTHING_TAKEN = Taken()


class Free:
    """A timetable as if the taken slots were none of its own."""

    __slots__ = ("_taken", "_times")

    def __init__(self, times: Timetable, taken: Taken) -> None:
        self._times = times
        self._taken = taken

    @property
    def one_off(self) -> bool:
        return self._times.one_off

    def next_after(self, t: int) -> int | None:
        slot = self._times.next_after(t)
        while slot is not None and (span := self._taken.covering(slot)) is not None:
            slot = self._times.next_after(span[1])
        return slot

    def latest_until(self, t: int) -> int | None:
        slot = self._times.latest_until(t)
        while slot is not None and (span := self._taken.covering(slot)) is not None:
            slot = self._times.latest_until(span[0] - 1)
        return slot

    def is_slot(self, t: int) -> bool:
        return self._times.is_slot(t) and self._taken.covering(t) is None

    def count_between(self, after: int, until: int, limit: int = EXACT) -> int | None:
        taken = 0
        for first, last in self._taken.within(after + 1, until):
            some = self._times.count_between(first - 1, last, EXACT)
            if some is None:
                return None
            taken += some
        every = self._times.count_between(after, until, limit + taken)
        return None if every is None else every - taken


def free(times: Timetable, taken: Taken) -> Timetable:
    return Free(times, taken) if taken else times


def pieces(times: Timetable, taken: Taken, gap: Skipped) -> list[Skipped]:
    """The range of slots not fired without those that have a row of their own: each slot stands in one row (P1)."""
    inside = taken.within(gap.first, gap.last)
    if not inside:
        return [gap]
    found: list[Skipped] = []
    at: int | None = gap.first
    for first, last in [*inside, (gap.last + 1, gap.last + 1)]:
        if at is None or at > gap.last:
            break
        end = times.latest_until(first - 1)
        if end is not None and end >= at:
            after_first = times.count_between(at, end, EXACT - 1)
            slots = None if after_first is None else after_first + 1
            found.append(Skipped(first=at, last=end, slots=slots, reason=gap.reason))
        at = times.next_after(max(at - 1, last))
    return found
