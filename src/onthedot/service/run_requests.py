"""A run with what it sent, and what it was answered."""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.errors import NotFound
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.run import RunView
from onthedot.model.run_comparison import RunComparison, compare_views
from onthedot.model.run_request import RunRequest, SentRun, response_of
from onthedot.service.base import ServiceBase
from onthedot.store import RunFilter

__all__ = ["RunRequestVerbs"]


class RunRequestVerbs(ServiceBase):
    async def inspect_run(self, tenant: int, run_id: str) -> RunView:
        """The run, its request made of its job as it was when the last attempt started."""
        run = await self.store.get_run(tenant, run_id)
        request = await self._request_of(tenant, run)
        return msgspec.structs.replace(run, request=request, response=response_of(run.outcome))

    async def _request_of(self, tenant: int, run: RunView) -> RunRequest | None:
        """None: it has not started, or its job is no more, or is no longer known as it was."""
        began = await self._began(run)
        found = None if began is None else await self._job_at(tenant, run.job_id, began)
        if began is None or found is None:
            return None
        job = found.job
        sent = SentRun(
            run_id=run.id,
            job_id=run.job_id,
            scheduled_for=run.scheduled_for,
            attempt=run.attempt,
            started_at=parse_rfc3339(began) or 0,
            params={**job.params, **(run.params or {})},
            callback=job.policy.completion == "callback",
        )
        request: RunRequest = job.target.request(sent)
        return request

    async def compare_runs(self, tenant: int, run_id: str, other_id: str | None = None) -> RunComparison:
        """A run beside another one; None: beside the last run of its job before it that succeeded."""
        run = await self.inspect_run(tenant, run_id)
        if other_id is None:
            good = await self.last_good_run(tenant, run)
            if good is None:
                raise NotFound(f"no successful run of this job was found among the 2,000 before {run_id!r}")
            other_id = good.id
        other = await self.inspect_run(tenant, other_id)
        versions = [await self._version_of(tenant, each) for each in (run, other)]
        return compare_views(run, other, *versions)

    async def last_good_run(self, tenant: int, run: RunView) -> RunView | None:
        """The run of the job before this one that succeeded, as lists have it."""
        before = (parse_rfc3339(run.scheduled_for) or 0) - 1
        found = await self.store.list_runs(tenant, RunFilter(job_id=run.job_id, status="DONE", until=before, limit=1))
        return found.items[0] if found.items else None

    async def _version_of(self, tenant: int, run: RunView) -> int | None:
        began = await self._began(run)
        found = None if began is None else await self._job_at(tenant, run.job_id, began)
        return None if found is None else found.version

    async def _began(self, run: RunView) -> str | None:
        """When the last attempt started."""
        if run.status == "EXECUTING":  # its start may not be written before its end
            return run.started_at or format_instant(await self.time.now())
        return run.started_at or next((each.started_at for each in reversed(run.attempts) if each.started_at), None)

    async def _job_at(self, tenant: int, job_id: int, at: str) -> _JobThen | None:
        """None: it was deleted, or is no longer known as it was. Instants are texts of one form, which have the same
        order."""
        try:
            job = await self.store.get_job(tenant, job_id)
            if job.updated_at <= at:
                return _JobThen(job.version, job)
            cursor = None
            while True:
                page = await self.store.list_versions(tenant, job_id, cursor=cursor)
                found = next((version for version in page.items if version.at <= at), None)
                if found is not None:
                    return _JobThen(found.version, found.spec)
                if page.next is None:
                    return None
                cursor = page.next
        except NotFound:
            return None


class _JobThen(msgspec.Struct, frozen=True):
    """The job, or its spec, with secrets masked."""

    version: int
    job: Any
