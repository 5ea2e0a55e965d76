"""Pure decisions: what a verb, a claim, an outcome, a lost node do. Data in, data out; no clock, no store, no chance.

cursor    where a job's cursor stands after create, edit, pause, resume
ahead     what a clock that was ahead left behind
chains    which jobs can follow which
claim     which slots a first claim fires, gives up, puts into the backlog
lane      overlap
groups    concurrency groups: who may run, who waits, whose turn is next
outcome   done, retry, dead letter; lost and interrupted attempts
completion  results that come later, by a callback
retries   how often, how long apart, until when
slots     ranges of slots, and `count`
taken     slots that have a row already, and are passed over
times     due_at, ready_at
shares    who gets how many of the free slots
"""

from __future__ import annotations

from onthedot.plan.ahead import (
    SLACK_MS,
    Back,
    Cut,
    cut_off,
    floor_ahead,
    on_clock_back,
    wait_after_clock_back,
)
from onthedot.plan.chains import chain_number, chain_objections
from onthedot.plan.claim import ClaimPlan, expired, on_claim, recorded_first
from onthedot.plan.completion import Standing, not_completed, on_complete, standing_of
from onthedot.plan.cursor import (
    FIRINGS,
    Change,
    Opening,
    on_cancel,
    on_delete,
    on_edit,
    on_pause,
    on_resume,
    only_slot,
    opening,
    same_times,
)
from onthedot.plan.groups import TURN_MS, GroupState, InLine, Turns, take_turns
from onthedot.plan.lane import LaneMove, on_lane
from onthedot.plan.outcome import (
    Accepted,
    Dead,
    Decision,
    Done,
    Lost,
    RetryLater,
    on_interrupted,
    on_lost,
    on_outcome,
    overdue,
    stopped_by,
)
from onthedot.plan.retries import backoff, most_tries, retry_until, wait_after
from onthedot.plan.shares import in_backlog, on_time_share, shares
from onthedot.plan.slots import EXACT, Skipped
from onthedot.plan.taken import NOTHING_TAKEN, Free, Taken, free
from onthedot.plan.times import LOOKAHEAD_MS, due_at, laned, ready_at, timetable_of

__all__ = [
    "EXACT",
    "FIRINGS",
    "LOOKAHEAD_MS",
    "NOTHING_TAKEN",
    "SLACK_MS",
    "TURN_MS",
    "Accepted",
    "Back",
    "Change",
    "ClaimPlan",
    "Cut",
    "Dead",
    "Decision",
    "Done",
    "Free",
    "GroupState",
    "InLine",
    "LaneMove",
    "Lost",
    "Opening",
    "RetryLater",
    "Skipped",
    "Standing",
    "Taken",
    "Turns",
    "backoff",
    "chain_number",
    "chain_objections",
    "cut_off",
    "due_at",
    "expired",
    "floor_ahead",
    "free",
    "in_backlog",
    "laned",
    "most_tries",
    "not_completed",
    "on_cancel",
    "on_claim",
    "on_clock_back",
    "on_complete",
    "on_delete",
    "on_edit",
    "on_interrupted",
    "on_lane",
    "on_lost",
    "on_outcome",
    "on_pause",
    "on_resume",
    "on_time_share",
    "only_slot",
    "opening",
    "overdue",
    "ready_at",
    "recorded_first",
    "retry_until",
    "same_times",
    "shares",
    "standing_of",
    "stopped_by",
    "take_turns",
    "timetable_of",
    "wait_after",
    "wait_after_clock_back",
]
