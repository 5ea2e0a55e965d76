"""Results that come later: what a receiver tells counts once, for its try, and nothing else ends what it waits for."""

from __future__ import annotations

from proof.planted.focus import Focus
from proof.planted.plant import code, sql

__all__ = ["BUGS"]

_PLAN = "onthedot.plan.completion"
_STORE = "onthedot.store.runs.callbacks"
_CALLED = Focus(policy={"completion": "callback", "completion_timeout": 4000})
_ONCE = Focus(policy={"completion": "callback", "completion_timeout": 20_000, "delivery": "at_most_once"}, mood="slow")
_QUEUED = Focus(policy={"completion": "callback", "completion_timeout": 4000, "overlap": "queue"})
_TESTS = ("tests/store/test_callbacks.py",)

BUGS = (
    code(
        "callback: done when accepted",
        "a call that was only accepted is recorded as done",
        "onthedot.plan.outcome:on_outcome",
        'spec.policy.completion != "answer"',
        "False",
        focus=_CALLED,
    ),
    code(
        "callback: repeats count again",
        "a second callback for the same try is refused as one that came too late",
        f"{_PLAN}:standing_of",
        'any(attempt.completion == "callback" for attempt in told)',
        "False",
        focus=_CALLED,
    ),
    code(
        "callback: earlier tries refused",
        "work that was done is thrown away because its call had timed out",
        f"{_PLAN}:standing_of",
        "never_accepted and try_number <= tries",
        "False",
        focus=_CALLED,
    ),
    code(
        "callback: taken after its time",
        "a try that was given up after its acceptance is completed all the same",
        f"{_PLAN}:standing_of",
        "all(attempt.completion is None for attempt in told)",
        "True",
        focus=_CALLED,
    ),
    code(
        "callback: earlier failure ends it",
        "that an earlier try failed for good ends the run while the next try is under way",
        f"{_PLAN}:on_complete",
        "outcome.retryable or not pending",
        "outcome.retryable",
        tests=("tests/unit/plan/test_completion.py", *_TESTS),
        unseen="no receiver of the simulation says so of a call whose connection broke",
    ),
    code(
        "callback: done ignored",
        "a run whose receiver says that it is done is tried again",
        f"{_PLAN}:on_complete",
        'Done(status="done", tries=run.tries if earlier else run.tries + 1, losses=run.losses)',
        "on_outcome(run, Outcome(kind='error', retryable=True), now, random)",
        focus=_CALLED,
    ),
    code(
        "callback: lost at most once is over",
        "a run that was sent at most once and lost does not wait for its callback",
        "onthedot.plan.outcome:on_lost",
        "run.begun and run.callback_ms is not None",
        "False",
        faults=("kill",),
        focus=_ONCE,
    ),
    code(
        "callback: any token",
        "who has the URL of one try can complete every other",
        "onthedot.model.callback:try_named",
        "hmac.compare_digest(callback_token(secret, run_id, try_number), token)",
        "True",
        focus=_CALLED,
    ),
    code(
        "callback: a token for each send",
        "the callback of a call that was lost and sent again is refused",
        "onthedot.engine.running.callbacks:CallbackUrls.url_of",
        "run.tries + 1",
        "run.token",
        faults=("kill",),
        focus=_CALLED,
    ),
    code(
        "callback: what its node has is left to it",
        "a callback that comes before the acceptance is recorded is lost",
        f"{_STORE}:Callbacks.complete",
        "standing in (Standing.CURRENT, Standing.EARLIER)",
        'standing in (Standing.CURRENT, Standing.EARLIER) and row["open"] is not None',
        focus=_CALLED,
    ),
    code(
        "callback: refusals not told",
        "a callback that was refused leaves no trace",
        f"{_STORE}:_note",
        'await tx.execute("add_logs", Rows([AttemptLog(run_id, tenant, text, now)]))',
        "pass",
        tests=_TESTS,
        unseen="the simulation does not read logs",
    ),
    sql(
        "callback: time from the claim",
        "the time to be completed counts from when the run was claimed",
        "accept_runs",
        "WHEN x.certain THEN t.now + x.within_ms",
        "WHEN x.certain THEN runs.claimed_at + x.within_ms",
        focus=_CALLED,
    ),
    sql(
        "callback: never too late",
        "a run whose receiver is gone waits for ever",
        "overdue_runs",
        "(r.open = 'callback' OR r.open_until",
        "(r.open = 'adopt' AND r.open_until",
        focus=_CALLED,
    ),
    sql(
        "callback: anybody's acceptance",
        "a node that has the run no more makes it open",
        "accept_runs",
        "runs.token = x.token AND (+runs.node = x.node OR (runs.open = 'callback' AND runs.work <> x.work))",
        "1",
        tests=_TESTS,
        unseen="no node reports an acceptance of what another one has claimed after it failed",
    ),
    sql(
        "callback: accepted again, more time",
        "a node that was given up gives the receiver its whole time again",
        "accept_runs",
        "WHEN runs.open = 'callback' THEN runs.open_until",
        "",
        tests=_TESTS,
        unseen="a node that was given up seldom comes back while its receiver still works",
    ),
    sql(
        "callback: lane freed",
        "the next run of the lane starts while the receiver works",
        "accept_runs",
        "open = 'callback', claimed_at",
        "open = 'callback', lane = NULL, claimed_at",
        focus=_QUEUED,
    ),
    sql(
        "callback: replaced one stays",
        "a run that waits for its callback is not stopped by a newer one",
        "order_stop",
        "CASE WHEN runs.open = 'callback' THEN",
        "CASE WHEN runs.open = 'never' THEN",
        tests=_TESTS,
        unseen="the newer run starts as soon as the callback comes, or its time is up",
    ),
    code(
        "callback: cancel is an order",
        "a cancelled run waits on, because no node reads its orders",
        "onthedot.store.runs.verbs:RunChanges.cancel_run",
        'row["open"] == CALLBACK',
        "False",
        tests=_TESTS,
        unseen="the order ends its time, too, and the next look ends the run",
    ),
)
