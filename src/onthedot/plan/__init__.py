"""Pure decisions: what a verb, a claim, an outcome, a lost node do. Data in, data out; no clock, no store, no chance.

skip      one slot that a user leaves out
undelete  where a job goes on that was deleted and comes back
cursor    where a job's cursor stands after create, edit, pause, resume
ahead     what a clock that was ahead left behind
chains    which jobs can follow which
differences  which firings a change adds, moves and removes
future    which slots are to come
claim     which slots a first claim fires, gives up, puts into the backlog
lane      overlap
groups    concurrency groups: who may run, who waits, whose turn is next
outcome   done, retry, dead letter; lost and interrupted attempts
cause     why a run failed, in short
completion  results that come later, by a callback
checkins  reports of jobs that run elsewhere, and that none came in time
retries   how often, how long apart, until when
slots     ranges of slots, and `count`
taken     slots that have a row already, and are passed over
times     due_at, ready_at
shares    who gets how many of the free slots
worker_shares  how many workers of a node one job or one tenant may have
breaker   whether calls to a destination are worth it
alerts    which rules apply to a job, and which conditions the end of a run meets
alert_groups  which messages become one
recovery  when an incident is over
portions  how much of a bulk operation is done at a time
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
from onthedot.plan.cause import cause_of
from onthedot.plan.chains import chain_number, chain_objections
from onthedot.plan.checkins import PingTimes, on_report, on_silence
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
from onthedot.plan.differences import SlotDifference, compare
from onthedot.plan.future import ToCome, to_come
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
from onthedot.plan.skip import coming, is_coming, nearest_coming, on_skip, on_unskip
from onthedot.plan.slots import EXACT, Skipped
from onthedot.plan.taken import NOTHING_TAKEN, Free, Taken, free
from onthedot.plan.times import LOOKAHEAD_MS, due_at, laned, ready_at, timetable_of
from onthedot.plan.undelete import Leftover, on_undelete, what_is_left

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
    "Leftover",
    "Lost",
    "Opening",
    "PingTimes",
    "RetryLater",
    "Skipped",
    "SlotDifference",
    "Standing",
    "Taken",
    "ToCome",
    "Turns",
    "backoff",
    "cause_of",
    "chain_number",
    "chain_objections",
    "coming",
    "compare",
    "cut_off",
    "due_at",
    "expired",
    "floor_ahead",
    "free",
    "in_backlog",
    "is_coming",
    "laned",
    "most_tries",
    "nearest_coming",
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
    "on_report",
    "on_resume",
    "on_silence",
    "on_skip",
    "on_time_share",
    "on_undelete",
    "on_unskip",
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
    "to_come",
    "wait_after",
    "wait_after_clock_back",
    "what_is_left",
]
