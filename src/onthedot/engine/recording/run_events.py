"""What the Recorder says of each run it wrote (P7: nothing ends without a row, a metric and a log line)."""

from __future__ import annotations

from typing import Any

from onthedot.plan import Accepted, Dead, Done, RetryLater
from onthedot.store import Finished
from onthedot.telemetry import emit

__all__ = ["report"]


def report(item: Finished) -> None:
    run, decision = item.run, item.decision
    names: dict[str, Any] = {"tenant": run.tenant, "job_id": run.job_id, "run_id": run.id, "key": run.spec.key}
    match decision:
        case RetryLater():
            if item.outcome.kind != "interrupted":
                emit("run.retried", **names, tries=decision.tries, error=item.outcome.error)
        case Accepted():
            if decision.certain:
                emit("run.accepted", **names, within_ms=decision.within_ms)
        case Done(status="skipped"):
            emit("run.skipped", **names, reason=decision.reason, n=1)
        case Done() | Dead():
            status = "FAILED" if isinstance(decision, Dead) else decision.status.upper()
            emit(
                "run.finished",
                **names,
                status=status,
                kind=item.outcome.kind,
                duration_ms=item.duration_ms,
                lateness_ms=item.lateness_ms,
                error=item.outcome.error,
            )
            if isinstance(decision, Dead):
                emit("dead.letter", **names, reason=decision.reason)
