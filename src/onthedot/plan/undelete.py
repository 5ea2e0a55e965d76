"""A job that was deleted comes back: where it goes on.

When it is deleted, all that is due gets its row, and what is left is noted: the slot that would be next. When it comes
back, slots that passed meanwhile become one range row, as after a pause; a one-off still fires, however late.
"""

from __future__ import annotations

import msgspec

from onthedot.errors import NoRoom
from onthedot.model.job import JobRecord
from onthedot.plan.cursor import Change, after_gap, unchanged
from onthedot.plan.slots import newest, remaining, span
from onthedot.plan.taken import NOTHING_TAKEN, Taken, free
from onthedot.plan.times import timetable_of

__all__ = ["Leftover", "on_undelete", "what_is_left"]


class Leftover(msgspec.Struct, frozen=True, kw_only=True):
    """Of a job that is deleted: its next slot, if it has one, and how far it has come."""

    cursor_slot: int | None
    claimed_slot: int | None
    slots_used: int


def what_is_left(job: JobRecord, cursor_slot: int | None, now: int, taken: Taken = NOTHING_TAKEN) -> Leftover:
    """`on_delete` writes the rows up to now; this says what comes after them."""
    stays = Leftover(cursor_slot=cursor_slot, claimed_slot=job.claimed_slot, slots_used=job.slots_used)
    if cursor_slot is None or cursor_slot > now or job.spec.schedule.one_off:
        return stays
    try:
        times = free(timetable_of(job.spec, job.anchor_at), taken)
        gone = span(times, cursor_slot, now, remaining(job.spec.schedule.count, job.slots_used))
        used = job.slots_used + gone.used
        slot = None if remaining(job.spec.schedule.count, used) == 0 else times.next_after(gone.last)
    except NoRoom:  # not the schedule's fault
        raise
    except Exception:  # quarantined: its cursor has its row, and nobody can say what follows
        return msgspec.structs.replace(stays, cursor_slot=None)
    return Leftover(cursor_slot=slot, claimed_slot=newest(job.claimed_slot, gone.last), slots_used=used)


def on_undelete(job: JobRecord, cursor_slot: int | None, now: int, taken: Taken = NOTHING_TAKEN) -> Change:
    """`job` and `cursor_slot` as they were left. The cursor has no row; it is inserted anew. A paused job whose last
    slot had passed when it was deleted has ended: there is nothing to resume."""
    if not job.spec.schedule.one_off:
        if job.state == "active" and (cursor_slot is None or cursor_slot <= now):
            return after_gap(job, cursor_slot, now, taken, reason="deleted")
        if job.state == "paused" and cursor_slot is None:
            change = after_gap(job, None, now, taken, reason="deleted")
            if change.state == "active":
                return msgspec.structs.replace(change, state="paused", parked=True)
            return change
    return msgspec.structs.replace(unchanged(job, cursor_slot), moved=True)
