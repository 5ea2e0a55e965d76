"""A user leaves out one slot that has not come yet, or takes that back before it comes.

The slot gets its row in the ledger now, long before its time, and is passed over from then on (see `taken`). It counts
towards `count`, as a slot does that was cancelled.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from onthedot.model.job import JobRecord, JobState
from onthedot.plan.cursor import Change, on_cancel, unchanged
from onthedot.plan.slots import COUNTED, newest, remaining
from onthedot.plan.taken import NOTHING_TAKEN, Taken, free
from onthedot.plan.times import timetable_of

__all__ = ["coming", "is_coming", "nearest_coming", "on_skip", "on_unskip"]


def is_coming(job: JobRecord, cursor_slot: int | None, slot: int, now: int, taken: Taken = NOTHING_TAKEN) -> bool:
    """Whether the job will fire at `slot`, as things stand: its next slot, or one after it that is not yet decided."""
    if cursor_slot is None or slot <= now or slot < cursor_slot:
        return False
    if slot == cursor_slot:
        return True
    times = free(timetable_of(job.spec, job.anchor_at), taken)
    if job.spec.schedule.one_off or not times.is_slot(slot):
        return False
    left = remaining(job.spec.schedule.count, job.slots_used)
    return left is None or left > COUNTED or times.count_between(cursor_slot, slot, left - 1) is not None


def nearest_coming(
    job: JobRecord, cursor_slot: int | None, slot: int, now: int, taken: Taken = NOTHING_TAKEN
) -> list[int]:
    """The last slot before and the first after an instant at which the job will fire, as far as there are such."""
    if cursor_slot is None:
        return []
    times = free(timetable_of(job.spec, job.anchor_at), taken)
    found = [times.latest_until(slot - 1), times.next_after(max(slot, now, cursor_slot - 1)), cursor_slot]
    slots = {each for each in found if each is not None and is_coming(job, cursor_slot, each, now, taken)}
    return sorted(sorted(slots, key=lambda each: abs(each - slot))[:2])


def coming(job: JobRecord, cursor_slot: int | None, now: int, taken: Taken = NOTHING_TAKEN) -> Iterator[int]:
    """The slots after now at which the job will fire; of a paused one: would, if it went on now."""
    if cursor_slot is None:
        return
    if job.spec.schedule.one_off:
        yield cursor_slot
        return
    times = free(timetable_of(job.spec, job.anchor_at), taken)
    slot: int | None = cursor_slot if cursor_slot > now else times.next_after(now)
    left = remaining(job.spec.schedule.count, job.slots_used)
    if left is not None and slot is not None and cursor_slot < slot and left <= COUNTED:
        passed = times.count_between(cursor_slot, slot, left)
        left = 0 if passed is None else max(left - passed, 0)
    while slot is not None and left != 0:
        yield slot
        slot, left = times.next_after(slot), None if left is None else left - 1


def on_skip(job: JobRecord, cursor_slot: int, slot: int, taken: Taken = NOTHING_TAKEN) -> Change:
    """`slot` is coming. If it is the next one, the one after it is now."""
    if slot == cursor_slot:
        return on_cancel(job, slot, taken)
    return msgspec.structs.replace(
        unchanged(job, cursor_slot), claimed_slot=newest(job.claimed_slot, slot), slots_used=job.slots_used + 1
    )


def on_unskip(job: JobRecord, cursor_slot: int | None, slot: int, skipped_at: int) -> Change | None:
    """A slot that was left out and has not come yet fires after all. None: it is none of the schedule there is now, or
    the job has come to the end of its `count`. One that was left out of a former schedule was not charged to this."""
    used = max(job.slots_used - (skipped_at >= job.anchor_at), 0)
    if not timetable_of(job.spec, job.anchor_at).is_slot(slot) or remaining(job.spec.schedule.count, used) == 0:
        return None
    change = msgspec.structs.replace(unchanged(job, cursor_slot), slots_used=used)
    if cursor_slot is not None and cursor_slot < slot:
        return change
    state: JobState = job.state
    if state == "ended":
        state = "paused" if job.spec.paused else "active"
    return msgspec.structs.replace(change, state=state, cursor_slot=slot, moved=True, parked=state == "paused")
