"""Every clause of the statements that begin and finish."""

from __future__ import annotations

from proof.planted.focus import Focus
from proof.planted.plant import Bug, Sql, sql

__all__ = ["BUGS"]

_KILLS = ("kill", "kill_at")
_FREEZES = ("freeze", "freeze_at")

BUGS = (
    sql(
        "begin: any token",
        "an old owner may send",
        "begin_runs",
        "AND runs.token = x.value ->> 1 ",
        "",
        tests=("tests/store/test_finish.py", "tests/store/test_orders.py", "tests/store/test_interleavings.py"),
        unseen="the node's own fence stands before it: both would have to fail",
    ),
    sql(
        "begin: any node",
        "a node that is not the owner may send",
        "begin_runs",
        "AND +runs.node = ?1 ",
        "",
        faults=(*_FREEZES, "cut", "outage"),
    ),
    sql(
        "begin: against orders",
        "what was recalled or cancelled is sent",
        "begin_runs",
        "AND runs.orders IS NULL",
        "",
        faults=("outage", "flaky", "hang"),
        focus=Focus(policy={"delivery": "at_most_once"}, verbs=("pause", "delete")),
    ),
    sql(
        "begin: not written",
        "the send is allowed and not recorded",
        "begin_runs",
        "begun_at = coalesce(begun_at, now_ms())",
        "begun_at = begun_at",
        faults=_KILLS,
    ),
    sql(
        "finish_done: any token",
        "an old attempt's good answer is recorded",
        "finish_done",
        "AND token = ?3 ",
        "",
        tests=("tests/store/test_finish.py", "tests/store/test_interleavings.py"),
        unseen="the other half of the fence holds, and a node does not answer for two attempts of one run at once",
    ),
    sql(
        "finish_done: any node",
        "another node's good answer is recorded",
        "finish_done",
        "AND +node = ?1 ",
        "",
        tests=("tests/store/test_finish.py", "tests/store/test_interleavings.py"),
        unseen="the other half of the fence holds, and a node does not answer for two attempts of one run at once",
    ),
    Bug(
        name="finish_done: any owner",
        what="anybody's good answer is recorded",
        edits=(Sql("finish_done", "AND token = ?3 AND +node = ?1 ", ""),),
        faults=_FREEZES,
        seeds=tuple(range(1, 13)),
    ),
    sql(
        "finish_done: no try counted",
        "a run that went well has no try",
        "finish_done",
        "tries + 1, losses",
        "tries, losses",
    ),
    sql(
        "finish_record: no conflict",
        "a run recorded as another's",
        "finish_record",
        "r.token, x.value ->> 5",
        "r.token + 1, x.value ->> 5",
    ),
    sql(
        "finish_retry: tries forgotten",
        "a run's tries are not kept",
        "finish_retry",
        "tries = x.value ->> 2",
        "tries = runs.tries",
        focus=Focus(mood="bad"),
    ),
    sql(
        "finish_retry: losses forgotten",
        "a run's losses are not kept",
        "finish_retry",
        "losses = x.value ->> 3",
        "losses = runs.losses",
        faults=_KILLS,
    ),
    sql(
        "finish_retry: at once",
        "a retry does not wait",
        "finish_retry",
        "ELSE max(x.value ->> 1, now_ms()) END",
        "ELSE now_ms() END",
        focus=Focus(retry={"attempts": 4, "backoff": 1000}, mood="bad"),
    ),
    sql(
        "finish_retry: attempts forgotten",
        "what came of the earlier attempts is not kept",
        "finish_retry",
        "attempts = x.value ->> 4",
        "attempts = runs.attempts",
    ),
    sql(
        "finish_retry: cursor again",
        "a retry is its job's next run",
        "finish_retry",
        "cursor = x.value ->> 5",
        "cursor = 1",
    ),
    sql(
        "finish_lock: any token",
        "an old owner's failure is recorded",
        "finish_lock",
        "r.token = x.value ->> 1 AND",
        "",
        tests=("tests/store/test_finish.py", "tests/store/test_interleavings.py"),
        unseen="the other half of the fence holds, and a node does not answer for two attempts of one run at once",
    ),
    sql(
        "finish_lock: any node",
        "another node's failure is recorded",
        "finish_lock",
        "AND +r.node = x.value ->> 2 ",
        "",
        tests=("tests/store/test_finish.py", "tests/store/test_interleavings.py"),
        unseen="the other half of the fence holds, and a node does not answer for two attempts of one run at once",
    ),
    sql(
        "release_lanes: nobody",
        "who waits for a lane waits for ever",
        "release_lanes",
        "AND runs.parked = 'lane' AND",
        "AND 0 AND",
        focus=Focus(policy={"overlap": "queue"}, mood="slow"),
    ),
    sql(
        "add_stats: overwritten",
        "a job's statistics are those of its last batch",
        "add_stats",
        "runs = runs + excluded.runs",
        "runs = excluded.runs",
    ),
    sql(
        "end_runs: wrong token",
        "a run that ends unsent has a token it never had",
        "end_runs",
        "r.token, r.tries",
        "r.token + 7, r.tries",
    ),
    sql(
        "end_runs: wrong status",
        "a run cancelled while it waited is recorded as done",
        "end_runs",
        "x.value ->> 1, x.value ->> 2",
        "'done', x.value ->> 2",
        focus=Focus(verbs=("cancel",)),
    ),
)
