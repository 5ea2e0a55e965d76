"""Pure decisions: what a verb, a claim, an outcome, a lost node do. Data in, data out; no clock, no store, no chance."""

from __future__ import annotations

from onthedot.plan.cursor import Change, Opening, on_edit, on_pause, on_resume, opening, same_times
from onthedot.plan.slots import EXACT, Skipped
from onthedot.plan.times import LOOKAHEAD_MS, due_at, laned, ready_at, timetable_of

__all__ = [
    "EXACT",
    "LOOKAHEAD_MS",
    "Change",
    "Opening",
    "Skipped",
    "due_at",
    "laned",
    "on_edit",
    "on_pause",
    "on_resume",
    "opening",
    "ready_at",
    "same_times",
    "timetable_of",
]
