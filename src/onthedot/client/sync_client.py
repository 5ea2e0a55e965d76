"""The HTTP API for programs without asyncio.

    with Client("http://127.0.0.1:8000") as client:
        job = client.create_job(JobSpec(...))

The methods are documented in AsyncClient.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from onthedot.client.answers import BatchResult, ResultPage
from onthedot.client.async_client import AsyncClient
from onthedot.clock import Clock
from onthedot.model.audit_entry import AuditEntry
from onthedot.model.bulk import BulkCount, BulkOperation, BulkVerb
from onthedot.model.chains import ChainNeighbours
from onthedot.model.change_plan import ChangePlan
from onthedot.model.dead import DeadGroups, DeadLetterView
from onthedot.model.destination import DestinationDetail, DestinationView
from onthedot.model.group import GroupView
from onthedot.model.incident import ChannelTest, IncidentView
from onthedot.model.job import JobSpec, JobStatus, JobView
from onthedot.model.key import ApiKey, ApiKeyCreated, ApiKeySpec
from onthedot.model.node import NodeView
from onthedot.model.preview import Explanation, Preview
from onthedot.model.proof import Proof
from onthedot.model.run import RunView
from onthedot.model.run_comparison import RunComparison
from onthedot.model.schedule import Schedule
from onthedot.model.script import ScriptDetail, ScriptView
from onthedot.model.series import RunSeries, StatsSeries, Step
from onthedot.model.setting import SettingView
from onthedot.model.slots import ExplainedSlots, JobCalendar
from onthedot.model.sync import SyncReport
from onthedot.model.timer import TimerSpec, TimerView
from onthedot.model.upcoming import Forecast, UpcomingList
from onthedot.model.upcoming_slots import UpcomingSlots
from onthedot.model.version import JobVersion

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
        ca: str | Path | None = None,
    ) -> None:
        self._async = AsyncClient(url, key, timeout=timeout, tries=tries, clock=clock, ca=ca)
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

    def explain_slots(self, job_id: int, since: str, until: str | None = None, *, limit: int = 1000) -> ExplainedSlots:
        return self._run(self._async.explain_slots(job_id, since, until, limit=limit))

    def calendar(
        self, job_id: int, *, since: str | None = None, until: str | None = None, tz: str | None = None
    ) -> JobCalendar:
        return self._run(self._async.calendar(job_id, since=since, until=until, tz=tz))

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

    def undelete_job(
        self, job: int | str, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        return self._run(self._async.undelete_job(job, if_match=if_match, idempotency_key=idempotency_key))

    def list_alerts(self, **filters: Any) -> ResultPage[IncidentView]:
        return self._run(self._async.list_alerts(**filters))

    def incident_bundle(self, incident_id: int) -> dict[str, Any]:
        return self._run(self._async.incident_bundle(incident_id))

    def test_channel(self, channel: str, *, idempotency_key: str | None = None) -> ChannelTest:
        return self._run(self._async.test_channel(channel, idempotency_key=idempotency_key))

    def list_audit(self, **filters: Any) -> ResultPage[AuditEntry]:
        return self._run(self._async.list_audit(**filters))

    def upcoming_slots(self, job_id: int, *, count: int = 10) -> UpcomingSlots:
        return self._run(self._async.upcoming_slots(job_id, count=count))

    def skip_slot(
        self, job_id: int, slot: str, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        return self._run(self._async.skip_slot(job_id, slot, if_match=if_match, idempotency_key=idempotency_key))

    def unskip_slot(
        self, job_id: int, slot: str, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        return self._run(self._async.unskip_slot(job_id, slot, if_match=if_match, idempotency_key=idempotency_key))

    # runs and dead letters

    def list_runs(self, **filters: Any) -> ResultPage[RunView]:
        return self._run(self._async.list_runs(**filters))

    def iter_runs(self, **filters: Any) -> Iterator[RunView]:
        return self._each(self._async.iter_runs(**filters))

    def get_run(self, run_id: str) -> RunView:
        return self._run(self._async.get_run(run_id))

    def run_logs(self, run_id: str) -> str:
        return self._run(self._async.run_logs(run_id))

    def compare_runs(self, run_id: str, other: str | None = None) -> RunComparison:
        return self._run(self._async.compare_runs(run_id, other))

    def run_bundle(self, run_id: str) -> dict[str, Any]:
        return self._run(self._async.run_bundle(run_id))

    def cancel_run(self, run_id: str, *, idempotency_key: str | None = None) -> RunView:
        return self._run(self._async.cancel_run(run_id, idempotency_key=idempotency_key))

    def retry_run(
        self, run_id: str, *, params: Mapping[str, Any] | None = None, idempotency_key: str | None = None
    ) -> RunView:
        return self._run(self._async.retry_run(run_id, params=params, idempotency_key=idempotency_key))

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

    def list_dead(self, **filters: Any) -> ResultPage[DeadLetterView]:
        return self._run(self._async.list_dead(**filters))

    def iter_dead(self, **filters: Any) -> Iterator[DeadLetterView]:
        return self._each(self._async.iter_dead(**filters))

    def redrive(
        self,
        ids: Sequence[str] | None = None,
        *,
        job_id: int | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        limit: int = 1000,
        idempotency_key: str | None = None,
    ) -> list[str]:
        return self._run(
            self._async.redrive(ids, job_id=job_id, filter=filter, limit=limit, idempotency_key=idempotency_key)
        )

    def group_dead(self, **filters: Any) -> DeadGroups:
        return self._run(self._async.group_dead(**filters))

    def discard(
        self,
        ids: Sequence[str] | None = None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        note: str | None = None,
        limit: int = 1000,
        idempotency_key: str | None = None,
    ) -> list[str]:
        return self._run(
            self._async.discard(ids, filter=filter, note=note, limit=limit, idempotency_key=idempotency_key)
        )

    # bulk operations

    def start_operation(
        self,
        verb: BulkVerb,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        ids: Sequence[int | str] | None = None,
        params: Mapping[str, Any] | None = None,
        rate: int | None = None,
        idempotency_key: str | None = None,
    ) -> BulkOperation:
        return self._run(
            self._async.start_operation(
                verb, filter=filter, ids=ids, params=params, rate=rate, idempotency_key=idempotency_key
            )
        )

    def count_operation(
        self,
        verb: BulkVerb,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        ids: Sequence[int | str] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> BulkCount:
        return self._run(self._async.count_operation(verb, filter=filter, ids=ids, params=params))

    def get_operation(self, operation_id: int) -> BulkOperation:
        return self._run(self._async.get_operation(operation_id))

    def list_operations(self, **filters: Any) -> ResultPage[BulkOperation]:
        return self._run(self._async.list_operations(**filters))

    def iter_operations(self, **filters: Any) -> Iterator[BulkOperation]:
        return self._each(self._async.iter_operations(**filters))

    def abort_operation(self, operation_id: int, *, idempotency_key: str | None = None) -> BulkOperation:
        return self._run(self._async.abort_operation(operation_id, idempotency_key=idempotency_key))

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

    def node_names(self, ids: Iterable[str]) -> dict[str, str]:
        return self._run(self._async.node_names(ids))

    def drain_node(self, node_id: str, *, idempotency_key: str | None = None) -> NodeView:
        return self._run(self._async.drain_node(node_id, idempotency_key=idempotency_key))

    def pause_all(self, *, note: str | None = None, idempotency_key: str | None = None) -> dict[str, Any]:
        return self._run(self._async.pause_all(note=note, idempotency_key=idempotency_key))

    def resume_all(self, *, idempotency_key: str | None = None) -> dict[str, Any]:
        return self._run(self._async.resume_all(idempotency_key=idempotency_key))

    def list_destinations(self) -> list[DestinationView]:
        return self._run(self._async.list_destinations())

    def get_destination(self, destination: str) -> DestinationDetail:
        return self._run(self._async.get_destination(destination))

    def list_groups(self) -> list[GroupView]:
        return self._run(self._async.list_groups())

    def stats(self) -> dict[str, Any]:
        return self._run(self._async.stats())

    def stats_series(self, step: Step = "minute", *, since: str | None = None, until: str | None = None) -> StatsSeries:
        return self._run(self._async.stats_series(step, since=since, until=until))

    def upcoming(self, *, until: str | None = None, limit: int = 50, cursor: str | None = None) -> UpcomingList:
        return self._run(self._async.upcoming(until=until, limit=limit, cursor=cursor))

    def forecast(self, *, hours: int = 24) -> Forecast:
        return self._run(self._async.forecast(hours=hours))

    def plan(self, **change: Any) -> ChangePlan:
        return self._run(self._async.plan(**change))

    def settings(self) -> list[SettingView]:
        return self._run(self._async.settings())

    def proof(self) -> Proof:
        return self._run(self._async.proof())

    def run_series(self, job_id: int, *, limit: int = 100) -> RunSeries:
        return self._run(self._async.run_series(job_id, limit=limit))

    def health(self) -> dict[str, Any]:
        return self._run(self._async.health())

    def ready(self) -> dict[str, Any]:
        """Readiness of the node. Raises StoreUnavailable while it is not ready."""
        return self._run(self._async.ready())

    def create_key(self, spec: ApiKeySpec, *, idempotency_key: str | None = None) -> ApiKeyCreated:
        return self._run(self._async.create_key(spec, idempotency_key=idempotency_key))

    def list_keys(self, tenant: str | None = None) -> list[ApiKey]:
        return self._run(self._async.list_keys(tenant))

    def revoke_key(self, key_id: int, tenant: str | None = None) -> None:
        self._run(self._async.revoke_key(key_id, tenant))

    # scripts

    def upload_script(self, code: str, *, name: str | None = None, idempotency_key: str | None = None) -> ScriptView:
        return self._run(self._async.upload_script(code, name=name, idempotency_key=idempotency_key))

    def list_scripts(self, **filters: Any) -> ResultPage[ScriptView]:
        return self._run(self._async.list_scripts(**filters))

    def get_script(self, script_id: str) -> ScriptDetail:
        return self._run(self._async.get_script(script_id))

    def delete_script(self, script_id: str) -> None:
        self._run(self._async.delete_script(script_id))
