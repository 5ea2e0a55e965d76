"""Jobs and their versions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from onthedot.client.answers import BatchResult, ResultPage
from onthedot.client.asynchronous.area import NOTHING, AsyncArea, given
from onthedot.client.headers import if_match_header, once_header, verb_headers
from onthedot.model.chains import ChainNeighbours
from onthedot.model.job import JobSpec, JobStatus, JobView
from onthedot.model.run import RunView
from onthedot.model.sync import SyncReport
from onthedot.model.version import JobVersion

__all__ = ["AsyncJobs"]


class AsyncJobs(AsyncArea):
    async def create_job(self, spec: JobSpec, *, idempotency_key: str | None = None) -> JobView:
        """Create a job."""
        return await self._http.call("POST", "/v1/jobs", JobView, body=spec, headers=once_header(idempotency_key))

    async def create_many(self, specs: Sequence[JobSpec], *, idempotency_key: str | None = None) -> list[BatchResult]:
        """Create up to 5,000 jobs. Returns one result per job, in order; an invalid job does not affect the others."""
        return await self._http.call(
            "POST", "/v1/jobs/batch", list[BatchResult], body=list(specs), headers=once_header(idempotency_key)
        )

    async def get_job(self, job_id: int) -> JobView:
        """Get a job by ID."""
        return await self._http.call("GET", f"/v1/jobs/{job_id}", JobView)

    async def get_job_by_key(self, key: str) -> JobView:
        """Get a job by key."""
        return await self._http.call("GET", f"/v1/jobs/by-key/{quote(key, safe='')}", JobView)

    async def list_jobs(self, **filters: Any) -> ResultPage[JobView]:
        """Get one page of jobs.

        Filters: q, tag, status, target, schedule, owner, last_status, failing, late, never_ran, ended, next_before,
        next_after, sort, limit, cursor. A page can be short and still have a `next`.
        """
        return await self._http.call("GET", "/v1/jobs", ResultPage[JobView], query=filters)

    def iter_jobs(self, **filters: Any) -> AsyncIterator[JobView]:
        """Iterate over all jobs, fetching pages as needed."""
        return self._pages("/v1/jobs", ResultPage[JobView], filters)

    async def replace_job(self, job_id: int, spec: JobSpec, *, if_match: int | None = None) -> JobView:
        """Replace a job. `if_match`: only if it still has this version."""
        return await self._http.call("PUT", f"/v1/jobs/{job_id}", JobView, body=spec, headers=if_match_header(if_match))

    async def put_job_by_key(self, key: str, spec: JobSpec, *, if_match: int | None = None) -> JobView:
        """Create or replace the job with this key."""
        path = f"/v1/jobs/by-key/{quote(key, safe='')}"
        return await self._http.call("PUT", path, JobView, body=spec, headers=if_match_header(if_match))

    async def patch_job(self, job_id: int, patch: Mapping[str, Any], *, if_match: int | None = None) -> JobView:
        """Apply a JSON merge patch (RFC 7396): the fields to change; None removes a field."""
        return await self._http.call(
            "PATCH",
            f"/v1/jobs/{job_id}",
            JobView,
            body=dict(patch),
            headers=if_match_header(if_match),
            media="application/merge-patch+json",
        )

    async def delete_job(self, job_id: int, *, if_match: int | None = None) -> None:
        """Delete a job. Its run history is kept."""
        await self._http.call("DELETE", f"/v1/jobs/{job_id}", NOTHING, headers=if_match_header(if_match))

    async def undelete_job(
        self, job: int | str, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        """Bring back a job that was deleted less than 10 minutes ago. `job`: its ID or its key. `if_match`: the version
        that it had."""
        name = str(job) if isinstance(job, int) else f"by-key/{quote(job, safe='')}"
        path, headers = f"/v1/jobs/{name}/undelete", verb_headers(idempotency_key, if_match)
        return await self._http.call("POST", path, JobView, headers=headers)

    async def pause_job(
        self,
        job_id: int,
        *,
        note: str | None = None,
        until: str | None = None,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> JobView:
        """Pause a job. `note`: the reason. `until` (RFC 3339): resume automatically at this time."""
        body = given(note=note, until=until)
        return await self._http.call(
            "POST", f"/v1/jobs/{job_id}/pause", JobView, body=body, headers=verb_headers(idempotency_key, if_match)
        )

    async def resume_job(
        self, job_id: int, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        """Resume a paused job."""
        return await self._http.call(
            "POST", f"/v1/jobs/{job_id}/resume", JobView, headers=verb_headers(idempotency_key, if_match)
        )

    async def run_job(
        self,
        job_id: int,
        *,
        params: Mapping[str, Any] | None = None,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> RunView:
        """Run a job now, in addition to its schedule. `params` are merged over the job's, for this run only."""
        body = given(params=None if params is None else dict(params))
        return await self._http.call(
            "POST", f"/v1/jobs/{job_id}/run", RunView, body=body, headers=verb_headers(idempotency_key, if_match)
        )

    async def job_status(self, job_id: int) -> JobStatus:
        """Status of the executing run, else of the next, else of the last run."""
        return await self._http.call("GET", f"/v1/jobs/{job_id}/status", JobStatus)

    async def chain_of(self, job_id: int) -> ChainNeighbours:
        """The jobs before and after a job in chains."""
        return await self._http.call("GET", f"/v1/jobs/{job_id}/chain", ChainNeighbours)

    async def sync_jobs(
        self, source: str, specs: Iterable[JobSpec], *, prune: bool = False, dry_run: bool = False, **more: Any
    ) -> SyncReport:
        """Make the jobs of `source` match `specs`. Changes nothing if a spec is invalid.

        Options: `adopt=True` takes over jobs with these keys from other sources; `former` is a previous name of the
        source; `file` (`host:/path`) identifies the file if the source is only a file name, so that PostgreSQL prunes
        only jobs from that file.
        """
        body = {"source": source, "jobs": list(specs), "prune": prune, "dry_run": dry_run, **more}
        return await self._http.call("POST", "/v1/jobs/sync", SyncReport, body=body, repeatable=True)

    async def list_versions(self, job_id: int, **filters: Any) -> ResultPage[JobVersion]:
        """Get one page of the versions of a job, newest first. Filters: limit, cursor."""
        return await self._http.call("GET", f"/v1/jobs/{job_id}/versions", ResultPage[JobVersion], query=filters)

    def iter_versions(self, job_id: int, **filters: Any) -> AsyncIterator[JobVersion]:
        """Iterate over the versions of a job, newest first, fetching pages as needed."""
        return self._pages(f"/v1/jobs/{job_id}/versions", ResultPage[JobVersion], filters)

    async def restore_version(
        self, job_id: int, version: int, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        """Change a job back to what it was at a version."""
        path, headers = f"/v1/jobs/{job_id}/versions/{version}/restore", verb_headers(idempotency_key, if_match)
        return await self._http.call("POST", path, JobView, headers=headers)
