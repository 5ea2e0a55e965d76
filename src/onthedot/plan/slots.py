"""Ranges of slots: what stands between a cursor and now, cut off where `count` ends."""

from __future__ import annotations

import msgspec

from onthedot.model.run import SkipReason
from onthedot.timing import Timetable

__all__ = ["COUNTED", "EXACT", "Skipped", "Span", "newest", "remaining", "span"]

EXACT = 10_000
"""A range says how many slots it covers up to here; counting on would make one long outage stop a whole claim."""

COUNTED = 100_000
"""How far we count when a `count` depends on it: under a second of cron arithmetic."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """The slots `first` … `last`, both included. `slots` is None past EXACT, `used` what is charged to `count`."""

    first: int
    last: int
    slots: int | None
    used: int


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """Slots that will not fire: one range row in the ledger, named after its first slot."""

    first: int
    last: int
    slots: int | None
    reason: SkipReason


def newest(slot: int | None, other: int) -> int:
    return other if slot is None else max(slot, other)


def remaining(count: int | None, used: int) -> int | None:
    """How many slots the schedule has left under its `count`; None: no end."""
    return None if count is None else max(count - used, 0)


def span(times: Timetable, first: int, until: int, left: int | None) -> Span:
    """All slots from `first` (a slot, at or before `until`) up to `until`, at most `left` of them."""
    last = max(times.latest_until(until) or first, first)
    slots = _count(times, first, last, EXACT)
    if left is None:
        return Span(first=first, last=last, slots=slots, used=slots or EXACT)
    counted = slots if slots is not None else _count(times, first, last, min(max(left, EXACT), COUNTED))
    if left <= COUNTED and (counted is None or counted > left):
        last, counted = _nth(times, first, left), left
        slots = left if left <= EXACT else None
    return Span(first=first, last=last, slots=slots, used=counted if counted is not None else COUNTED)


def _count(times: Timetable, first: int, last: int, limit: int) -> int | None:
    after_first = times.count_between(first, last, limit - 1)
    return None if after_first is None else after_first + 1


def _nth(times: Timetable, first: int, n: int) -> int:
    """The n-th slot, counting `first` as the first."""
    slot = first
    for _ in range(n - 1):
        following = times.next_after(slot)
        if following is None:
            break
        slot = following
    return slot
