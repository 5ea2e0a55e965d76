"""Every branch of `plan.cursor`: create, edit, pause, resume, cancel."""

from __future__ import annotations

from proof.planted.focus import Focus
from proof.planted.plant import code

__all__ = ["BUGS"]

_AWAY = ("outage", "power_cut")
_CURSOR = "onthedot.plan.cursor"

BUGS = (
    code(
        "create: paused ignored",
        "a job that is made paused fires",
        f"{_CURSOR}:opening",
        '"paused" if spec.paused else "active"',
        '"active"',
        focus=Focus(paused=True, verbs=("pause",)),
    ),
    code(
        "create: first slot left out",
        "a new job begins with its second slot",
        f"{_CURSOR}:opening",
        "_BEFORE_TIME if spec.schedule.one_off else now)",
        "_BEFORE_TIME if spec.schedule.one_off else now)\n"
        "        slot = slot and (timetable_of(spec, now).next_after(slot) or slot)",
    ),
    code(
        "edit: schedule kept",
        "an edited schedule is not taken into force",
        f"{_CURSOR}:same_times",
        "old.schedule == new.schedule and",
        "True and",
        focus=Focus(verbs=("edit",)),
    ),
    code(
        "edit: anchor moves with any edit",
        "an edit of the target makes the schedule begin anew",
        f"{_CURSOR}:same_times",
        "return old.schedule == new.schedule and",
        "return False and",
    ),
    code(
        "edit: anchor stays",
        "a new `every` counts from where the old one did",
        f"{_CURSOR}:_new_times",
        "anchor_at=now",
        "anchor_at=job.anchor_at",
        focus=Focus(verbs=("edit",)),
    ),
    code(
        "edit: count goes on",
        "a changed schedule does not restart its count",
        f"{_CURSOR}:_new_times",
        "slots_used=0",
        "slots_used=job.slots_used",
        tests=("tests/unit/plan/test_cursor.py",),
        unseen="no edit of the simulation has a count",
    ),
    code(
        "edit: due slots forgotten",
        "slots that were due and not claimed when the schedule changed have no row",
        f"{_CURSOR}:_new_times",
        "skipped=skipped",
        "skipped=None",
        faults=_AWAY,
        focus=Focus(verbs=("edit",)),
    ),
    code(
        "edit: a fired one-off fires again",
        "the very instant that was claimed already is set anew",
        f"{_CURSOR}:_new_times",
        "slot is not None and (slot == claimed or taken.covering(slot))",
        "False",
        tests=("tests/unit/plan/test_cursor.py",),
        unseen="no user of the simulation names the very instant that was fired",
    ),
    code(
        "edit: resumes",
        "an edit of a paused job sets it going",
        f"{_CURSOR}:on_edit",
        'paused = spec.paused or (job.state == "paused" and not job.spec.paused)',
        "paused = False",
        tests=("tests/unit/plan/test_cursor.py",),
        unseen="a job that was made paused was not paused by a verb, which is what is judged",
    ),
    code(
        "edit: an ended job stays ended",
        "an update does not revive it",
        f"{_CURSOR}:_new_times",
        'state = state if slot is not None else "ended"',
        'state = state if slot is not None and job.state != "ended" else "ended"\n'
        '        slot = None if state == "ended" else slot',
        focus=Focus(schedule={"count": 3}, verbs=("edit",)),
    ),
    code(
        "pause: parks nothing",
        "a paused job's cursor stays claimable",
        f"{_CURSOR}:on_pause",
        'state="paused", parked=True',
        'state="paused", parked=False',
        focus=Focus(verbs=("pause",)),
    ),
    code(
        "pause: said, not done",
        "the job stays active",
        f"{_CURSOR}:on_pause",
        'return unchanged(job, cursor_slot, state="paused", parked=True)',
        "return unchanged(job, cursor_slot)",
    ),
    code(
        "resume: one-off given up",
        "a one-off that came due while paused never fires",
        f"{_CURSOR}:on_resume",
        "job.spec.schedule.one_off or (",
        "(",
        focus=Focus(verbs=("pause",)),
    ),
    code(
        "resume: no row for the gap",
        "slots that passed while paused leave no row",
        f"{_CURSOR}:after_gap",
        "skipped=skipped",
        "skipped=None",
        focus=Focus(verbs=("pause",)),
    ),
    code(
        "resume: wrong reason",
        "slots that passed while paused are recorded as late",
        f"{_CURSOR}:on_resume",
        'reason="paused"',
        'reason="late"',
        tests=("tests/unit/plan/test_cursor.py",),
        unseen="the model does not say which reason a range must have",
    ),
    code(
        "resume: slots of the gap fire",
        "the cursor stays where it was paused",
        f"{_CURSOR}:on_resume",
        "job.spec.schedule.one_off or (cursor_slot is not None and cursor_slot > now)",
        "True",
        focus=Focus(verbs=("pause",)),
    ),
    code(
        "resume: gap does not count",
        "slots that passed while paused are not counted",
        f"{_CURSOR}:after_gap",
        "used + gap.used",
        "used",
        focus=Focus(schedule={"count": 30, "every": 1500}, verbs=("pause",)),
    ),
    code(
        "cancel: uses no slot",
        "a cancelled slot does not count",
        f"{_CURSOR}:on_cancel",
        "used = job.slots_used + 1",
        "used = job.slots_used",
        focus=Focus(schedule={"count": 12, "every": 7000}, verbs=("cancel",)),
    ),
    code(
        "cancel: the job ends",
        "with its next run cancelled a recurring job has none",
        f"{_CURSOR}:on_cancel",
        "not job.spec.schedule.one_off and remaining(job.spec.schedule.count, used) != 0",
        "False",
        focus=Focus(verbs=("cancel",)),
    ),
    code(
        "cancel: the slot stays",
        "the run after the cancelled one is the same slot",
        f"{_CURSOR}:on_cancel",
        ".next_after(cursor_slot)",
        ".next_after(cursor_slot - 1)",
        focus=Focus(verbs=("cancel",)),
    ),
)
