"""Where a job's cursor stands after a user's verb: create, edit, pause, resume.

The cursor is the one pending run that is the job's next slot. It stays in `runs` while the job is paused or quarantined
(parked), so that its slot says from where on nothing is covered yet: that is where the range row of a resume begins.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.errors import NoRoom
from onthedot.model.job import JobRecord, JobSpec, JobState
from onthedot.model.run import RunKind, SkipReason
from onthedot.plan.slots import Skipped, newest, remaining, span
from onthedot.plan.taken import NOTHING_TAKEN, Taken, free, pieces
from onthedot.plan.times import seed_of, timetable_of
from onthedot.timing import plain_delay

__all__ = [
    "FIRINGS",
    "Change",
    "Opening",
    "after_gap",
    "on_cancel",
    "on_delete",
    "on_edit",
    "on_pause",
    "on_resume",
    "only_slot",
    "opening",
    "same_times",
    "unchanged",
]

FIRINGS: tuple[RunKind, ...] = ("scheduled", "redrive")
"""The kinds of runs while which a one-off has not ended: its slot's own, and what drives that one again."""

_BEFORE_TIME = -(2**62)


class Opening(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a new job starts. A paused one has its cursor too, parked."""

    state: JobState
    anchor_at: int
    cursor_slot: int | None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What a verb makes of a job and its cursor.

    moved False: the pending cursor row, if there is one, is the right one (only its parking may change).
    moved True: delete it; insert one at `cursor_slot` unless that is None.
    parked: the job's pending runs wait for a resume (`ready_at` = NEVER, `parked` = 'paused'); runs made by hand don't.
    skipped: the range rows to write in the same transaction.
    Runs that were claimed ahead and given back are pending without being the cursor: those not yet tried whose slot the
    new schedule lacks (`timetable_of(spec, change.anchor_at).is_slot`) are cancelled by the edit.
    """

    state: JobState
    anchor_at: int
    claimed_slot: int | None
    slots_used: int
    cursor_slot: int | None
    moved: bool = False
    parked: bool = False
    skipped: Sequence[Skipped] = ()
    driven: bool = False  # the one-off's dead letter is driven again, now


def opening(spec: JobSpec, now: int) -> Opening:
    """A new job: first slot after now; a one-off has its slot even if that passed while the request was on its way."""
    slot = plain_delay(spec.schedule, now)
    if slot is None:
        slot = timetable_of(spec, now).next_after(_BEFORE_TIME if spec.schedule.one_off else now)
    state: JobState = "ended" if slot is None else "paused" if spec.paused else "active"
    return Opening(state=state, anchor_at=now, cursor_slot=slot)


def same_times(old: JobSpec, new: JobSpec) -> bool:
    """Whether both have the same slots: the schedule as written, and what `H` hashes."""
    return old.schedule == new.schedule and ("H" not in (new.schedule.cron or "") or seed_of(old) == seed_of(new))


def on_edit(
    job: JobRecord,
    cursor_slot: int | None,
    spec: JobSpec,
    now: int,
    taken: Taken = NOTHING_TAKEN,
    *,
    dead: bool = False,
) -> Change:
    """An update. The same schedule keeps its cursor, its anchor and its count; another one starts anew, at its first
    slot after now that has no row yet. Ended and quarantined jobs live again if there is a slot to come. dead: the
    firing of a one-off is a dead letter; with another target, say, it is worth another try."""
    paused = spec.paused or (job.state == "paused" and not job.spec.paused)
    if not same_times(job.spec, spec):
        return _new_times(job, cursor_slot, spec, now, taken, paused=paused)
    edited = msgspec.structs.replace(job, spec=spec)
    if job.state in ("ended", "quarantined"):
        return _revived(edited, cursor_slot, now, taken, paused=paused, dead=dead)
    if paused:
        return on_pause(edited, cursor_slot)
    return on_resume(edited, cursor_slot, now, taken)


def on_pause(job: JobRecord, cursor_slot: int | None) -> Change:
    """Everything that waits is parked where it is. An ended or quarantined job has nothing to pause."""
    if job.state in ("ended", "quarantined"):
        return unchanged(job, cursor_slot)
    return unchanged(job, cursor_slot, state="paused", parked=True)


def on_resume(job: JobRecord, cursor_slot: int | None, now: int, taken: Taken = NOTHING_TAKEN) -> Change:
    """Slots that passed while paused become one range row; a one-off still fires, however late."""
    if job.state != "paused":
        return unchanged(job, cursor_slot)
    if job.spec.schedule.one_off or (cursor_slot is not None and cursor_slot > now):
        return unchanged(job, cursor_slot, state="active")
    return after_gap(job, cursor_slot, now, taken, reason="paused")


def on_cancel(job: JobRecord, cursor_slot: int, taken: Taken = NOTHING_TAKEN) -> Change:
    """The cursor itself is cancelled: that slot is used, the job goes on with the one after it."""
    used = job.slots_used + 1
    slot = None
    if not job.spec.schedule.one_off and remaining(job.spec.schedule.count, used) != 0:
        slot = free(timetable_of(job.spec, job.anchor_at), taken).next_after(cursor_slot)
    return Change(
        state="ended" if slot is None else job.state,
        anchor_at=job.anchor_at,
        claimed_slot=newest(job.claimed_slot, cursor_slot),
        slots_used=used,
        cursor_slot=slot,
        moved=True,
        parked=job.state == "paused",
    )


def on_delete(job: JobRecord, cursor_slot: int | None, now: int, taken: Taken = NOTHING_TAKEN) -> list[Skipped]:
    """The job goes: what came due behind its cursor and was not claimed will not fire. (The cursor has a row.)"""
    if cursor_slot is None or cursor_slot >= now or job.spec.schedule.one_off:
        return []
    try:
        every = timetable_of(job.spec, job.anchor_at)
        first, left = free(every, taken).next_after(cursor_slot), remaining(job.spec.schedule.count, job.slots_used + 1)
        if first is None or first > now or left == 0:
            return []
        gap = span(free(every, taken), first, now, left)
        reason: SkipReason = "paused" if job.state == "paused" else "deleted"
        return pieces(every, taken, Skipped(first=gap.first, last=gap.last, slots=gap.slots, reason=reason))
    except NoRoom:  # not the schedule's fault
        raise
    except Exception:  # quarantined: nobody can say which slots there were
        return []


def unchanged(
    job: JobRecord, cursor_slot: int | None, *, state: JobState | None = None, parked: bool | None = None
) -> Change:
    after = state or job.state
    return Change(
        state=after,
        anchor_at=job.anchor_at,
        claimed_slot=job.claimed_slot,
        slots_used=job.slots_used,
        cursor_slot=cursor_slot,
        parked=after == "paused" if parked is None else parked,
    )


def _revived(job: JobRecord, cursor_slot: int | None, now: int, taken: Taken, *, paused: bool, dead: bool) -> Change:
    """Same schedule, but it had ended or could not be computed: see whether it has a slot to come after all."""
    if job.spec.schedule.one_off:
        if cursor_slot is None and dead:
            return msgspec.structs.replace(unchanged(job, None, state="paused" if paused else "active"), driven=True)
        if cursor_slot is None:
            return unchanged(job, None)
        return unchanged(job, cursor_slot, state="paused" if paused else "active")  # quarantined before it fired
    change = after_gap(job, cursor_slot, now, taken, reason="late")
    if paused and change.state == "active":
        return msgspec.structs.replace(change, state="paused", parked=True)
    return change


def after_gap(job: JobRecord, cursor_slot: int | None, now: int, taken: Taken, *, reason: SkipReason) -> Change:
    """The slots from the old cursor up to now are given up; the next one is the first after that."""
    every = timetable_of(job.spec, job.anchor_at)
    times = free(every, taken)
    skipped, claimed, used = list[Skipped](), job.claimed_slot, job.slots_used
    if cursor_slot is not None and cursor_slot <= now:
        gap = span(times, cursor_slot, now, remaining(job.spec.schedule.count, used))
        skipped = pieces(every, taken, Skipped(first=gap.first, last=gap.last, slots=gap.slots, reason=reason))
        claimed, used = newest(claimed, gap.last), used + gap.used
    slot = None
    if remaining(job.spec.schedule.count, used) != 0:
        slot = times.next_after(now)
    return Change(
        state="active" if slot is not None else "ended",
        anchor_at=job.anchor_at,
        claimed_slot=claimed,
        slots_used=used,
        cursor_slot=slot,
        moved=True,
        skipped=skipped,
    )


def _new_times(
    job: JobRecord, cursor_slot: int | None, spec: JobSpec, now: int, taken: Taken, *, paused: bool
) -> Change:
    """Another schedule: it counts from now. Slots of the old one that were due but not yet claimed get their row."""
    skipped, claimed = _left_behind(job, cursor_slot, now, taken), _claimed(job, cursor_slot)
    if skipped:
        claimed = newest(claimed, skipped[-1].last)
    times = timetable_of(spec, now)
    state: JobState = "paused" if paused else "active"
    if spec.schedule.one_off:
        slot = times.next_after(_BEFORE_TIME)
        if slot is not None and (slot == claimed or taken.covering(slot)):  # it is under way, or over: never twice
            slot, state = None, "ended" if job.state == "ended" else state
    else:
        slot = free(times, taken).next_after(now)
        state = state if slot is not None else "ended"
    return Change(
        state=state,
        anchor_at=now,
        claimed_slot=claimed,
        slots_used=0,
        cursor_slot=slot,
        moved=True,
        parked=state == "paused",
        skipped=skipped,
    )


def only_slot(job: JobRecord) -> int | None:
    """The slot of a one-off, past or to come."""
    return timetable_of(job.spec, job.anchor_at).next_after(_BEFORE_TIME)


def _claimed(job: JobRecord, cursor_slot: int | None) -> int | None:
    """The newest slot ever claimed. A one-off's claim does not touch its job: that its cursor is gone says so."""
    if not job.spec.schedule.one_off or cursor_slot is not None:
        return job.claimed_slot
    slot = only_slot(job)
    return job.claimed_slot if slot is None else newest(job.claimed_slot, slot)


def _left_behind(job: JobRecord, cursor_slot: int | None, now: int, taken: Taken) -> list[Skipped]:
    if cursor_slot is None or cursor_slot > now or job.spec.schedule.one_off:
        return []
    reason: SkipReason = "paused" if job.state == "paused" else "late"
    try:
        every = timetable_of(job.spec, job.anchor_at)
        gap = span(free(every, taken), cursor_slot, now, remaining(job.spec.schedule.count, job.slots_used))
        return pieces(every, taken, Skipped(first=gap.first, last=gap.last, slots=gap.slots, reason=reason))
    except NoRoom:  # not the schedule's fault
        raise
    except Exception:  # quarantined: the old schedule can't be computed, its one known slot can be named
        return [Skipped(first=cursor_slot, last=cursor_slot, slots=1, reason=reason)]
