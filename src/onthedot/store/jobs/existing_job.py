"""A verb on one job that exists: it is locked, or the verb refused, and the answer is the job as it is then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from types import NoneType

from onthedot.model.job import JobView
from onthedot.store.driver import Transaction
from onthedot.store.jobs.apply_plan import Locked, lock, refuse_other_version, refuse_quarantined
from onthedot.store.jobs.idempotency import Idempotency, once
from onthedot.store.jobs.views import no_job, read_view
from onthedot.store.topic import Topic

__all__ = ["lock_existing", "verb_on_job"]


async def lock_existing(
    tx: Transaction, tenant: int, job_id: int, if_match: int | None = None, *, quarantined: bool = True
) -> Locked:
    """Raises NotFound, or VersionMismatch. quarantined=False: Conflict for a job that is."""
    job = await lock(tx, tenant, job_id)
    if job is None:
        raise no_job(job_id)
    refuse_other_version(job, if_match)
    if not quarantined:
        refuse_quarantined(job)
    return job


async def verb_on_job(
    topic: Topic, tenant: int, job_id: int, repeat: Idempotency | None, act: Callable[[Transaction], Awaitable[None]]
) -> JobView:
    """The job as it is now. A repeat does nothing more, whatever was done to the job since."""

    @wraps(act)  # the driver knows by `act` what to prepare
    async def body(tx: Transaction) -> JobView:
        await once(tx, tenant, repeat, NoneType, lambda: act(tx))
        return await read_view(tx, tenant, job_id)

    return await topic.as_asked(body)
