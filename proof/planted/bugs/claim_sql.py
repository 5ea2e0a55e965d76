"""Every clause of the statements that claim: free runs, cursors, lanes."""

from __future__ import annotations

from proof.planted.focus import Focus
from proof.planted.plant import sql

__all__ = ["BUGS"]

_KILLS = ("kill", "kill_at")
_FREEZES = ("freeze", "freeze_at")
_AWAY = ("outage", "power_cut")
_STORE = ("tests/store/test_claim.py", "tests/store/test_claim_recurring.py", "tests/store/test_lanes.py")

BUGS = (
    sql(
        "claim_free: any state",
        "a run that another node has is claimed again",
        "claim_free",
        "c.state = 'pending' AND c.lane IS NULL",
        "c.lane IS NULL",
    ),
    sql(
        "claim_free: before its time",
        "a waiting retry is claimed at once",
        "claim_free",
        "AND c.ready_at <= w.high",
        "",
    ),
    sql(
        "claim_free: also cursors",
        "a recurring job's cursor is taken without its job",
        "claim_free",
        "AND NOT (c.cursor AND c.recurring)",
        "",
    ),
    sql(
        "claim_free: late share ignored",
        "late runs come before those on time",
        "claim_free",
        "(NOT p.late OR p.nth <= ?5) AND",
        "",
        tests=_STORE,
        unseen="a share of slots shows only on nodes that are full for minutes",
    ),
    sql(
        "claim_free: of any kind",
        "a node takes what it does not offer",
        "claim_free",
        "c.requires = o.value AND ",
        "",
        tests=_STORE,
        unseen="all targets of the simulation are webhooks",
    ),
    sql(
        "claim_free: by a lost node",
        "a node that was declared lost goes on claiming",
        "claim_free",
        "AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = ?1 AND lost_at IS NOT NULL)",
        "",
        tests=("tests/store/test_nodes.py", "tests/store/test_claim.py"),
        unseen="a lost node hears of it with its next beat, before it claims",
    ),
    sql(
        "claim_free: first claim forgotten",
        "max_age counts from the last claim",
        "claim_free",
        "first_claimed_at = coalesce(first_claimed_at, (SELECT now FROM n))",
        "first_claimed_at = (SELECT now FROM n)",
        focus=Focus(retry={"attempts": 6, "max_age": 1500}, mood="bad"),
    ),
    sql(
        "claim_cursors: before its time",
        "a cursor is claimed as soon as it is there",
        "claim_cursors",
        "AND c.ready_at <= w.high",
        "",
    ),
    sql(
        "claim_cursors: stays a cursor",
        "a claimed run is still its job's next one",
        "claim_cursors",
        "token = token + 1, cursor = 0,",
        "token = token + 1,",
    ),
    sql(
        "claim_cursors: by a lost node",
        "a node that was declared lost goes on claiming",
        "claim_cursors",
        "AND NOT EXISTS (SELECT 1 FROM nodes WHERE id = ?1 AND lost_at IS NOT NULL)",
        "",
        tests=("tests/store/test_nodes.py", "tests/store/test_claim.py", "tests/store/test_claim_recurring.py"),
        unseen="a lost node hears of it with its next beat, before it claims",
    ),
    sql(
        "pick_lanes: before its time",
        "a laned run is picked before it is due",
        "pick_lanes",
        "AND c.ready_at <= w.high",
        "",
    ),
    sql("pick_lanes: never", "nobody looks at lanes", "peek", "max(lanes) AS lanes", "0 AS lanes"),
    sql(
        "lane_state: running not seen",
        "a held lane looks free",
        "lane_state",
        "state = 'running' OR (parked = 'lane'",
        "(parked = 'lane'",
        focus=Focus(policy={"overlap": "skip"}, mood="slow"),
    ),
    sql(
        "lane_state: waiting not seen",
        "several wait in one lane",
        "lane_state",
        "state = 'running' OR (parked = 'lane' AND kind = 'scheduled' AND token = 0)",
        "state = 'running'",
        tests=("tests/store/test_lanes.py",),
        unseen="the model does not count who waits",
    ),
    sql(
        "take_lanes: token does not rise",
        "a laned run keeps its token",
        "take_lanes",
        "token = token + 1",
        "token = max(token, 1)",
        faults=_KILLS,
        focus=Focus(policy={"overlap": "queue"}, mood="slow"),
    ),
    sql(
        "wait_in_lane: not parked",
        "who waits is picked again and again",
        "wait_in_lane",
        "parked = 'lane', ready_at = 9223372036854775807",
        "ready_at = ready_at",
        focus=Focus(policy={"overlap": "queue"}, mood="slow"),
    ),
    sql(
        "order_stop: a lane's holder gets no order",
        "the run that is replaced is not stopped",
        "order_stop",
        "SET orders = x.orders",
        "SET orders = CASE WHEN x.orders = 'cancel' THEN x.orders ELSE runs.orders END",
        focus=Focus(policy={"overlap": "replace"}, schedule={"every": 1000}, mood="slow"),
    ),
    sql(
        "move_runs: the old instant",
        "a run moved to a later slot keeps its due time",
        "move_runs",
        "due_at = x.due_at",
        "due_at = due_at",
        faults=_AWAY,
    ),
    sql(
        "advance_jobs: count not written",
        "slots used are forgotten",
        "advance_jobs",
        "slots_used = x.slots_used",
        "slots_used = slots_used",
        focus=Focus(schedule={"count": 5}),
    ),
    sql(
        "advance_jobs: never ends",
        "a job that has no slot left stays active",
        "advance_jobs",
        "CASE WHEN x.ended_at IS NULL THEN state ELSE 'ended' END",
        "state",
        focus=Focus(schedule={"count": 5}),
    ),
    sql(
        "claimed_jobs: old spec",
        "a node goes on with the spec it knows",
        "claimed_jobs",
        "j.version = x.known",
        "x.known > 0",
        focus=Focus(verbs=("target", "policy")),
    ),
)
