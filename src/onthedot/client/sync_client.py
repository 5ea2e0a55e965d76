"""The HTTP API for programs without asyncio.

    with Client("http://127.0.0.1:8000") as client:
        job = client.create_job(JobSpec(...))

The methods are documented in AsyncClient.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, TypeVar

from onthedot.client.answers import BatchResult, ResultPage
from onthedot.client.async_client import AsyncClient
from onthedot.clock import Clock
from onthedot.model.destination import DestinationView
from onthedot.model.group import GroupView
from onthedot.model.job import JobSpec, JobStatus, JobView
from onthedot.model.key import ApiKey, ApiKeyCreated, ApiKeySpec
from onthedot.model.node import NodeView
from onthedot.model.preview import Explanation, Preview
from onthedot.model.run import RunView
from onthedot.model.schedule import Schedule
from onthedot.model.script import ScriptDetail, ScriptView
from onthedot.model.sync import SyncReport
from onthedot.model.timer import TimerSpec, TimerView

__all__ = ["Client"]

T = TypeVar("T")


class Client:
    """A blocking client for the HTTP API. Do not use it inside a running event loop; use AsyncClient there."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        key: str | None = None,
        *,
        timeout: float = 30.0,
        tries: int = 4,
        clock: Clock | None = None,
    ) -> None:
        self._async = AsyncClient(url, key, timeout=timeout, tries=tries, clock=clock)
        self._runner = asyncio.Runner()

    @property
    def url(self) -> str:
        return self._async.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._run(self._async.close())
        self._runner.close()

    def _run(self, verb: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(verb)

    def _each(self, items: AsyncIterator[T]) -> Iterator[T]:
        async def following() -> list[T]:
            async for item in items:
                return [item]
            return []

        while item := self._run(following()):
            yield item[0]

    # jobs

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

    def backfill_job(
        self,
        job_id: int,
        start: str,
        end: str,
        *,
        force: bool = False,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> list[str]:
        return self._run(
            self._async.backfill_job(
                job_id, start, end, force=force, if_match=if_match, idempotency_key=idempotency_key
            )
        )

    def slots_to_backfill(self, job_id: int, start: str, end: str, *, force: bool = False) -> list[str]:
        return self._run(self._async.slots_to_backfill(job_id, start, end, force=force))

    def explain(self, job_id: int, at: str) -> Explanation:
        return self._run(self._async.explain(job_id, at))

    def sync_jobs(
        self, source: str, specs: Iterable[JobSpec], *, prune: bool = False, dry_run: bool = False, **more: Any
    ) -> SyncReport:
        return self._run(self._async.sync_jobs(source, specs, prune=prune, dry_run=dry_run, **more))

    # runs and dead letters

    def list_runs(self, **filters: Any) -> ResultPage[RunView]:
        return self._run(self._async.list_runs(**filters))

    def iter_runs(self, **filters: Any) -> Iterator[RunView]:
        return self._each(self._async.iter_runs(**filters))

    def get_run(self, run_id: str) -> RunView:
        return self._run(self._async.get_run(run_id))

    def run_logs(self, run_id: str) -> str:
        return self._run(self._async.run_logs(run_id))

    def cancel_run(self, run_id: str, *, idempotency_key: str | None = None) -> RunView:
        return self._run(self._async.cancel_run(run_id, idempotency_key=idempotency_key))

    def retry_run(self, run_id: str, *, idempotency_key: str | None = None) -> RunView:
        return self._run(self._async.retry_run(run_id, idempotency_key=idempotency_key))

    def complete(
        self,
        callback: str,
        *,
        status: Literal["done", "failed"] = "done",
        result: Any = None,
        error: str | None = None,
        retryable: bool | None = None,
    ) -> RunView:
        told = self._async.complete(callback, status=status, result=result, error=error, retryable=retryable)
        return self._run(told)

    def progress(self, callback: str, *, percent: float | None = None, message: str | None = None) -> None:
        self._run(self._async.progress(callback, percent=percent, message=message))

    def list_dead(self, **filters: Any) -> ResultPage[RunView]:
        return self._run(self._async.list_dead(**filters))

    def iter_dead(self, **filters: Any) -> Iterator[RunView]:
        return self._each(self._async.iter_dead(**filters))

    def redrive(
        self,
        ids: Sequence[str] | None = None,
        *,
        job_id: int | None = None,
        limit: int = 1000,
        idempotency_key: str | None = None,
    ) -> list[str]:
        return self._run(self._async.redrive(ids, job_id=job_id, limit=limit, idempotency_key=idempotency_key))

    # timers, schedules

    def create_timer(self, timer: TimerSpec, *, idempotency_key: str | None = None) -> TimerView:
        return self._run(self._async.create_timer(timer, idempotency_key=idempotency_key))

    def get_timer(self, timer_id: int) -> TimerView:
        return self._run(self._async.get_timer(timer_id))

    def preview(self, schedule: Schedule, *, after: str | None = None, count: int = 10) -> Preview:
        return self._run(self._async.preview(schedule, after=after, count=count))

    # the cluster

    def list_nodes(self) -> list[NodeView]:
        return self._run(self._async.list_nodes())

    def list_destinations(self) -> list[DestinationView]:
        return self._run(self._async.list_destinations())

    def list_groups(self) -> list[GroupView]:
        return self._run(self._async.list_groups())

    def stats(self) -> dict[str, Any]:
        return self._run(self._async.stats())

    def health(self) -> dict[str, Any]:
        return self._run(self._async.health())

    def ready(self) -> dict[str, Any]:
        """Readiness of the node. Raises StoreUnavailable while it is not ready."""
        return self._run(self._async.ready())

    def create_key(self, spec: ApiKeySpec) -> ApiKeyCreated:
        return self._run(self._async.create_key(spec))

    def list_keys(self, tenant: str | None = None) -> list[ApiKey]:
        return self._run(self._async.list_keys(tenant))

    def revoke_key(self, key_id: int, tenant: str | None = None) -> None:
        self._run(self._async.revoke_key(key_id, tenant))

    # scripts

    def upload_script(self, code: str, *, name: str | None = None) -> ScriptView:
        return self._run(self._async.upload_script(code, name=name))

    def list_scripts(self, **filters: Any) -> ResultPage[ScriptView]:
        return self._run(self._async.list_scripts(**filters))

    def get_script(self, script_id: str) -> ScriptDetail:
        return self._run(self._async.get_script(script_id))

    def delete_script(self, script_id: str) -> None:
        self._run(self._async.delete_script(script_id))
