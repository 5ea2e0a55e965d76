"""A run with what it sent, and what it was answered."""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.errors import NotFound
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.run import RunView
from onthedot.model.run_request import RunRequest, SentRun, response_of
from onthedot.service.base import ServiceBase

__all__ = ["RunRequestVerbs"]


class RunRequestVerbs(ServiceBase):
    async def inspect_run(self, tenant: int, run_id: str) -> RunView:
        """The run, its request made of its job as it was when the last attempt started."""
        run = await self.store.get_run(tenant, run_id)
        request = await self._request_of(tenant, run)
        return msgspec.structs.replace(run, request=request, response=response_of(run.outcome))

    async def _request_of(self, tenant: int, run: RunView) -> RunRequest | None:
        """None: it has not started, or its job is no more, or is no longer known as it was."""
        began = run.started_at or next((each.started_at for each in reversed(run.attempts) if each.started_at), None)
        if run.status == "EXECUTING":  # its start may not be written before its end
            began = run.started_at or format_instant(await self.time.now())
        if began is None:
            return None
        try:
            job = await self._job_at(tenant, run.job_id, began)
        except NotFound:
            return None
        if job is None:
            return None
        sent = SentRun(
            run_id=run.id,
            job_id=run.job_id,
            scheduled_for=run.scheduled_for,
            attempt=run.attempt,
            started_at=parse_rfc3339(began) or 0,
            params={**job.params, **(run.params or {})},
            callback=job.policy.completion == "callback",
        )
        found: RunRequest = job.target.request(sent)
        return found

    async def _job_at(self, tenant: int, job_id: int, at: str) -> Any:
        """The job, or its spec, with secrets masked. Instants are texts of one form, which have the same order."""
        job = await self.store.get_job(tenant, job_id)
        if job.updated_at <= at:
            return job
        cursor = None
        while True:
            page = await self.store.list_versions(tenant, job_id, cursor=cursor)
            found = next((version.spec for version in page.items if version.at <= at), None)
            if found is not None or page.next is None:
                return found
            cursor = page.next
