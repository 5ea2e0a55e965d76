"""What the Recorder tells whoever traces runs, of each attempt that it wrote."""

from __future__ import annotations

from collections.abc import Iterable

from onthedot.plan import Dead, Done
from onthedot.store import Finished
from onthedot.telemetry.tracing import AttemptTrace, Tracer

__all__ = ["trace"]


def trace(item: Finished, tracers: Iterable[Tracer]) -> None:
    run, decision, code = item.run, item.decision, item.outcome.detail.get("status_code")
    status = "FAILED" if isinstance(decision, Dead) else decision.status.upper() if isinstance(decision, Done) else None
    attempt = AttemptTrace(
        run_id=run.id,
        job_id=run.job_id,
        key=run.spec.key,
        tenant=run.tenant,
        target=run.spec.target.type,
        trigger=run.kind,
        attempt=run.token,
        is_first=not run.attempts and not run.begun_before,
        due_at=run.due_at,
        claimed_at=run.first_claimed_at,
        started_at=item.started_at,
        finished_at=item.finished_at,
        outcome=item.outcome.kind,
        error=item.outcome.error,
        status=status,
        status_code=code if isinstance(code, int) else None,
        log=item.log,
    )
    for tracer in tracers:
        tracer.attempt_ended(attempt)
