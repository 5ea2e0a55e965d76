"""Until when claimed runs may be tried again: `retry.until` depends on when their job's schedule was given."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET

from onthedot.errors import NoRoom
from onthedot.model.job import JobRecord, JobSpec
from onthedot.model.run import ClaimedRun
from onthedot.plan import retry_until
from onthedot.store.driver import Transaction
from onthedot.store.runs.spec_cache import SpecCache

__all__ = ["limit_of", "with_retry_limits"]


async def with_retry_limits(
    tx: Transaction, specs: SpecCache, runs: list[ClaimedRun], jobs: Mapping[int, JobRecord]
) -> list[ClaimedRun]:
    """Few jobs have such a limit: what is not known of a job (`jobs`) is read for those alone."""
    limited = [run.job_id for run in runs if run.spec.policy.retry.until is not UNSET]
    if not limited:
        return runs
    jobs = {**jobs, **await specs.read(tx, (job_id for job_id in limited if job_id not in jobs))}
    wanted = set(limited) & jobs.keys()
    return [
        msgspec.structs.replace(run, retry_until=limit_of(run.spec, jobs[run.job_id].anchor_at, run.slot))
        if run.job_id in wanted
        else run
        for run in runs
    ]


def limit_of(spec: JobSpec, anchor_at: int, slot: int) -> int | None:
    """A schedule that can't be computed (any more) limits nothing: its job is quarantined when it goes on."""
    try:
        return retry_until(spec, anchor_at, slot)
    except NoRoom:  # not the schedule's fault
        raise
    except Exception:
        return None
