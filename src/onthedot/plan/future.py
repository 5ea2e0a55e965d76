"""Which slots of a job are to come: from its cursor on, as far as `count` reaches, without those decided already."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from onthedot.errors import OnTheDotError
from onthedot.model.job import JobRecord
from onthedot.plan.slots import remaining, span
from onthedot.plan.taken import Taken, free
from onthedot.plan.times import timetable_of
from onthedot.timing import Timetable
from onthedot.timing.timetable import Once

__all__ = ["ToCome", "to_come"]

_NEVER = 2**62
_MOST = 10**9


class ToCome(msgspec.Struct, frozen=True, kw_only=True):
    """`times`: the schedule; after `last` it has no slots. Those from `first` on fire, unless they are taken."""

    times: Timetable
    taken: Taken
    first: int
    last: int

    def has(self, slot: int) -> bool:
        return self.first <= slot <= self.last and self.taken.covering(slot) is None and self.times.is_slot(slot)

    def after(self, t: int) -> Iterator[int]:
        """Those that fire after `t`, one by one."""
        times = free(self.times, self.taken)
        slot = times.next_after(max(t, self.first - 1))
        while slot is not None and slot <= self.last:
            yield slot
            slot = times.next_after(slot)

    def count(self, since: int, until: int) -> int:
        """How many fire in since … until; a thousand million at most."""
        low, high = max(since, self.first), min(until, self.last)
        if low > high:
            return 0
        counted = free(self.times, self.taken).count_between(low - 1, high, _MOST)
        return _MOST if counted is None else counted


def to_come(job: JobRecord, cursor: int | None, taken: Taken, until: int) -> ToCome:
    """Up to `until`. A paused job fires from the end of its pause on, one that has ended or is quarantined never."""
    try:
        times = timetable_of(job.spec, job.anchor_at)
    except OnTheDotError:  # that is why it is quarantined
        return ToCome(times=Once(-_NEVER), taken=taken, first=_NEVER, last=-_NEVER)
    if cursor is None:
        last = -_NEVER if job.claimed_slot is None else job.claimed_slot
        return ToCome(times=times, taken=taken, first=_NEVER, last=last)
    first, last = cursor, until
    if job.state not in ("active", "paused") or (job.state == "paused" and job.pause_until is None):
        first = _NEVER
    elif job.pause_until is not None and not times.one_off:
        first = max(first, job.pause_until + 1)
    left = remaining(job.spec.schedule.count, job.slots_used)
    if left is not None and cursor <= until:
        last = span(free(times, taken), cursor, until, left).last if left else cursor - 1
    return ToCome(times=times, taken=taken, first=first, last=last)
