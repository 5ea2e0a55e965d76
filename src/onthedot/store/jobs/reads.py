"""Reading jobs inside a transaction that also does something else."""

from __future__ import annotations

from collections.abc import Sequence

from onthedot.errors import NotFound
from onthedot.model.job import JobView
from onthedot.store.driver import Transaction
from onthedot.store.jobs.rows import job_view

__all__ = ["VIEW", "no_job", "read_view", "read_views"]

VIEW = "+columns.view+joins.view"
"""Put after a statement's name: what a JobView is made of, next run and statistics included."""


def no_job(job_id: int) -> NotFound:
    return NotFound(f"there is no job {job_id}")


async def read_view(tx: Transaction, tenant: int, job_id: int) -> JobView:
    row = await tx.row("get_job" + VIEW, tenant, job_id)
    if row is None:
        raise no_job(job_id)
    return job_view(row)


async def read_views(tx: Transaction, tenant: int, ids: Sequence[int]) -> dict[int, JobView]:
    views = [job_view(row) for row in await tx.rows("get_jobs" + VIEW, tenant, list(ids))]
    return {view.id: view for view in views}
