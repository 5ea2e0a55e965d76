"""Jobs and their versions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from onthedot.client.answers import BatchResult, ResultPage
from onthedot.client.blocking.area import BlockingArea
from onthedot.model.chains import ChainNeighbours
from onthedot.model.job import JobSpec, JobStatus, JobView
from onthedot.model.run import RunView
from onthedot.model.sync import SyncReport
from onthedot.model.version import JobVersion

__all__ = ["BlockingJobs"]


class BlockingJobs(BlockingArea):
    def create_job(self, spec: JobSpec, *, idempotency_key: str | None = None) -> JobView:
        return self._run(self._async.create_job(spec, idempotency_key=idempotency_key))

    def create_many(self, specs: Sequence[JobSpec], *, idempotency_key: str | None = None) -> list[BatchResult]:
        return self._run(self._async.create_many(specs, idempotency_key=idempotency_key))

    def get_job(self, job_id: int) -> JobView:
        return self._run(self._async.get_job(job_id))

    def get_job_by_key(self, key: str) -> JobView:
        return self._run(self._async.get_job_by_key(key))

    def list_jobs(self, **filters: Any) -> ResultPage[JobView]:
        return self._run(self._async.list_jobs(**filters))

    def iter_jobs(self, **filters: Any) -> Iterator[JobView]:
        return self._each(self._async.iter_jobs(**filters))

    def replace_job(self, job_id: int, spec: JobSpec, *, if_match: int | None = None) -> JobView:
        return self._run(self._async.replace_job(job_id, spec, if_match=if_match))

    def put_job_by_key(self, key: str, spec: JobSpec, *, if_match: int | None = None) -> JobView:
        return self._run(self._async.put_job_by_key(key, spec, if_match=if_match))

    def patch_job(self, job_id: int, patch: Mapping[str, Any], *, if_match: int | None = None) -> JobView:
        return self._run(self._async.patch_job(job_id, patch, if_match=if_match))

    def delete_job(self, job_id: int, *, if_match: int | None = None) -> None:
        self._run(self._async.delete_job(job_id, if_match=if_match))

    def undelete_job(
        self, job: int | str, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        return self._run(self._async.undelete_job(job, if_match=if_match, idempotency_key=idempotency_key))

    def pause_job(
        self,
        job_id: int,
        *,
        note: str | None = None,
        until: str | None = None,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> JobView:
        return self._run(
            self._async.pause_job(job_id, note=note, until=until, if_match=if_match, idempotency_key=idempotency_key)
        )

    def resume_job(self, job_id: int, *, if_match: int | None = None, idempotency_key: str | None = None) -> JobView:
        return self._run(self._async.resume_job(job_id, if_match=if_match, idempotency_key=idempotency_key))

    def run_job(
        self,
        job_id: int,
        *,
        params: Mapping[str, Any] | None = None,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> RunView:
        return self._run(self._async.run_job(job_id, params=params, if_match=if_match, idempotency_key=idempotency_key))

    def job_status(self, job_id: int) -> JobStatus:
        return self._run(self._async.job_status(job_id))

    def chain_of(self, job_id: int) -> ChainNeighbours:
        return self._run(self._async.chain_of(job_id))

    def sync_jobs(
        self, source: str, specs: Iterable[JobSpec], *, prune: bool = False, dry_run: bool = False, **more: Any
    ) -> SyncReport:
        return self._run(self._async.sync_jobs(source, specs, prune=prune, dry_run=dry_run, **more))

    def list_versions(self, job_id: int, **filters: Any) -> ResultPage[JobVersion]:
        return self._run(self._async.list_versions(job_id, **filters))

    def iter_versions(self, job_id: int, **filters: Any) -> Iterator[JobVersion]:
        return self._each(self._async.iter_versions(job_id, **filters))

    def restore_version(
        self, job_id: int, version: int, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        return self._run(
            self._async.restore_version(job_id, version, if_match=if_match, idempotency_key=idempotency_key)
        )
