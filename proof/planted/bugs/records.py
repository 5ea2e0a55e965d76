"""Results and statistics recorded as something else than what happened."""

from __future__ import annotations

from proof.planted.plant import code

__all__ = ["BUGS"]

_KILLS = ("kill", "kill_at")
_BATCH = "onthedot.store.runs.finish_batch"
_ROWS = "onthedot.store.runs.finish_rows"
_CONTEXT = "onthedot.engine.running.run_context:RunContext"

BUGS = (
    code(
        "recorded: failed as done",
        "dead letters stand in the ledger as done",
        f"{_ROWS}:Item.status",
        'else "failed"',
        'else "done"',
    ),
    code(
        "recorded: tries forgotten",
        "the ledger says one try less",
        f"{_ROWS}:ended_run",
        "tries=decision.tries,",
        "tries=max(decision.tries - 1, 0),",
    ),
    code(
        "recorded: losses forgotten",
        "the ledger says that no node was lost",
        f"{_ROWS}:ended_run",
        "losses=decision.losses,",
        "losses=0,",
        tests=("tests/store/test_finish.py", "tests/store/test_nodes.py"),
        unseen="the model does not count losses",
    ),
    code(
        "recorded: no reason",
        "the ledger does not say why",
        f"{_ROWS}:ended_run",
        "decision.reason if isinstance(decision, Done | Dead) else None",
        "None",
    ),
    code(
        "recorded: other outcome",
        "the ledger says error, whatever it was",
        f"{_ROWS}:outcome_json",
        "if not outcome.detail:",
        'if outcome.kind != "ok":\n        return \'{"kind":"error"}\'\n    if not outcome.detail:',
    ),
    code(
        "recorded: no error",
        "what the receiver said is dropped",
        f"{_ROWS}:ended_run",
        "error=storable(outcome.error),",
        "error=None,",
    ),
    code(
        "recorded: start is the due time",
        "the ledger says that each run began on the dot",
        f"{_CONTEXT}.finished",
        "started_at=started_at,",
        "started_at=started_at and run.due_at,",
    ),
    code(
        "recorded: lateness is none",
        "the ledger says that nothing was late",
        f"{_CONTEXT}.finished",
        "lateness = first - run.due_at if first > run.due_at else 0",
        "lateness = 0",
        faults=("outage", "kill"),
    ),
    code(
        "recorded: lateness of the last try",
        "a retry is late because the first try failed",
        f"{_CONTEXT}.finished",
        "if run.attempts:",
        "if False:",
    ),
    code(
        "recorded: duration in seconds",
        "1.5 s are recorded as 2 ms",
        "onthedot.engine.running.monitor:Monitor._finished",
        "duration = round(self.seconds * 1000)",
        "duration = round(self.seconds)",
    ),
    code(
        "recorded: duration of another",
        "durations count from the slot",
        "onthedot.engine.running.monitor:Monitor._finished",
        "duration = round(self.seconds * 1000)",
        "duration = finished_at - self.run.slot",
    ),
    code(
        "recorded: ends when it began",
        "finished_at is the start",
        "onthedot.engine.running.monitor:Monitor._finished",
        "finished_at = context.time.at_us(now) // 1000",
        "finished_at = started or context.time.at_us(now) // 1000",
    ),
    code(
        "recorded: attempts forgotten",
        "a run keeps its last attempt only",
        f"{_ROWS}:Item.attempts_json",
        "[*self.attempts, self.attempt(claimed_at)]",
        "[self.attempt(claimed_at)]",
    ),
    code(
        "statistics: failures not counted",
        "a job's failures stay 0",
        "onthedot.store.jobs.stats:_sum",
        'sum(item.status == "failed" for item in items)',
        "0",
    ),
    code(
        "statistics: runs counted twice",
        "a job's runs are twice as many",
        "onthedot.store.jobs.stats:_sum",
        "runs=len(items)",
        "runs=2 * len(items)",
    ),
    code(
        "statistics: wrong last status",
        "a job's last status is always done",
        "onthedot.store.jobs.stats:_sum",
        "last_status=last.status",
        'last_status="done"',
    ),
    code(
        "statistics: durations not summed",
        "a job's mean duration is wrong",
        "onthedot.store.jobs.stats:_sum",
        "duration_ms=sum(durations)",
        "duration_ms=sum(durations[-1:]) * 2",
    ),
    code(
        "dead letters: none",
        "what failed for good is not among them",
        f"{_BATCH}:FinishBatch._follow_up",
        "if isinstance(item.decision, Dead)",
        "if False",
    ),
)
