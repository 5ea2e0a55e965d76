"""The database's clock was ahead, and is right again: what a job did for a future that has not come yet.

Slots that were fired then stay fired. Those that were only given up were not due in truth: their rows are cut off at
now, and the cursor goes back to the first slot that nobody covers. Without this every job is silent until the clock
comes to where it once was.
"""

from __future__ import annotations

import msgspec

from onthedot.model.job import JobRecord, JobState
from onthedot.plan.slots import EXACT, remaining
from onthedot.plan.taken import NOTHING_TAKEN, Taken, free
from onthedot.plan.times import timetable_of
from onthedot.timing import Timetable

__all__ = ["SLACK_MS", "Back", "Cut", "cut_off", "floor_ahead", "on_clock_back", "wait_after_clock_back"]

SLACK_MS = 1000
"""Clocks are set by less than this all the time; nobody is silent for longer by it."""


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of a range of slots that were given up ahead of their time; last None: nothing."""

    last: int | None
    slots: int | None
    given_back: int  # how many slots are due after all
    replaced: bool = False  # they are of a schedule that is no more


class Back(msgspec.Struct, frozen=True, kw_only=True):
    """Where the job goes on. `cursor_slot` replaces the cursor there is."""

    state: JobState
    slots_used: int
    cursor_slot: int


def floor_ahead(job: JobRecord, now: int, lookahead: int) -> bool:
    """Whether the job may have been carried into the future. A run cancelled long before its time looks like it, too:
    `on_clock_back` tells them apart. A one-off may have been a recurring job then."""
    if job.state == "quarantined":
        return False
    return job.claimed_slot is not None and job.claimed_slot > now + lookahead + SLACK_MS


def cut_off(job: JobRecord, first: int, last: int, now: int) -> Cut:
    """The range first … last of slots not fired, as it would be had the clock been right."""
    times = timetable_of(job.spec, job.anchor_at)
    if first <= job.anchor_at or not (times.is_slot(first) and times.is_slot(last)):
        return _cut_replaced(first, last, now)
    if first > now:
        return Cut(last=None, slots=None, given_back=_count(times, first, last) or EXACT)
    end = max(times.latest_until(min(now, last)) or first, first)
    return Cut(last=end, slots=_count(times, first, end), given_back=times.count_between(end, last) or 0)


def _cut_replaced(first: int, last: int, now: int) -> Cut:
    """Of a schedule that was replaced while the clock was ahead. Nobody can say which slots it had, or how many, and
    none of them is owed; but where the row stands, no slot of the new one may."""
    end = min(last, now) if first <= now else None
    return Cut(last=end, slots=1 if end == first else None, given_back=0, replaced=True)


def on_clock_back(
    job: JobRecord, cursor_slot: int | None, now: int, taken: Taken = NOTHING_TAKEN, given_back: int = 0
) -> Back | None:
    """The ledger says no more than what is true (given_back: slots that are due after all); None: the cursor is right.

    No slot before a schedule was given is owed. What was given while the clock was ahead begins as its answer said.
    """
    if job.spec.schedule.one_off or job.state == "quarantined":
        return None
    used = max(job.slots_used - given_back, 0)
    slot = None
    if remaining(job.spec.schedule.count, used) != 0:
        slot = free(timetable_of(job.spec, job.anchor_at), taken).next_after(max(now, job.anchor_at))
    if slot is None or (cursor_slot is not None and cursor_slot <= slot):
        return None
    state: JobState = "active" if job.state == "ended" else job.state
    return Back(state=state, slots_used=used, cursor_slot=slot)


def wait_after_clock_back(earliest: int, ready_at: int, ended: int | None, now: int) -> int | None:
    """From when on a waiting run may be claimed that a clock which was ahead put off until then; None: it was not.

    earliest: no run is taken before its instant. ended: its last try, None if there was none. One that ended in that
    future is tried again as long after now as it was to be after that, but not before its own time has come: it was
    tried early. (No retry comes before its last try has ended: one that does was set back before.)
    """
    if ended is None:
        due = max(earliest, now)
        return due if ready_at > due + SLACK_MS else None
    return max(earliest, now + ready_at - ended) if now + SLACK_MS < ended <= ready_at else None


def _count(times: Timetable, first: int, last: int) -> int | None:
    after_first = times.count_between(first, last, EXACT - 1)
    return None if after_first is None else after_first + 1
