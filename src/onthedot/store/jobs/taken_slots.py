"""Which slots after a job's cursor have a row already: cancelled long before their time, held ahead by a node, or fired
while the clock was ahead. `jobs.claimed_slot`, the newest slot that has one, says whether there can be any: nearly
always it lies before the cursor, and nobody has to look."""

from __future__ import annotations

from onthedot.errors import NoRoom
from onthedot.model.job import JobRecord
from onthedot.plan import NOTHING_TAKEN, Taken, free, timetable_of
from onthedot.store.driver import Transaction

__all__ = ["may_be_taken", "taken_after", "taken_by_next"]

_END = 2**62


def may_be_taken(job: JobRecord, after: int) -> bool:
    return job.claimed_slot is not None and job.claimed_slot > after


async def taken_after(tx: Transaction, job_id: int, after: int, until: int = _END) -> Taken:
    """The slots in (after, until] that have a row of their own or stand in a range; the cursor is none of them."""
    rows = await tx.rows("slots_with_rows", job_id, after, until)
    return Taken.of((row["slot"], row["until_slot"]) for row in rows) if rows else NOTHING_TAKEN


async def taken_by_next(tx: Transaction, job: JobRecord, slot: int, now: int) -> Taken:
    """What a claim of the cursor at `slot` must know: up to the slot that will be the next cursor, and no further."""
    if not may_be_taken(job, slot):
        return NOTHING_TAKEN
    try:
        times = timetable_of(job.spec, job.anchor_at)
        reach, start = times.next_after(max(slot, now)), max(slot, now)
        while reach is not None:
            taken = await taken_after(tx, job.id, slot, reach)
            following = free(times, taken).next_after(start)
            if following is None or following <= reach:
                return taken
            reach = following + 2 * (following - slot)  # a long row of taken slots takes few looks
    except NoRoom:  # not the schedule's fault
        raise
    except Exception:  # the claim will meet it too, and quarantines the job
        return NOTHING_TAKEN
    return await taken_after(tx, job.id, slot)
