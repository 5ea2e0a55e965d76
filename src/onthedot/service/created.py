"""What is told of a job that was created."""

from __future__ import annotations

from onthedot.clock import Clock
from onthedot.model.instant import parse_rfc3339
from onthedot.model.job import JobView
from onthedot.model.run import run_id
from onthedot.telemetry import emit, telemetry
from onthedot.telemetry.tracing import CreatedTrace

__all__ = ["tell_created"]


def tell_created(tenant: int, job: JobView, clock: Clock) -> None:
    emit("job.created", tenant=tenant, job_id=job.id)
    if telemetry.tracers and job.next_run is not None:
        _trace(tenant, job, job.next_run, clock)


def _trace(tenant: int, job: JobView, first: str, clock: Clock) -> None:
    """In the trace of its first run."""
    slot = parse_rfc3339(first)
    assert slot is not None
    run = run_id(job.id, slot)
    created = CreatedTrace(run_id=run, job_id=job.id, key=job.key, tenant=tenant, at_ns=clock.now_us() * 1000)
    for tracer in telemetry.tracers:
        tracer.job_created(created)
