"""The server's verbs for asyncio programs.

    async with AsyncClient("http://127.0.0.1:8000") as client:
        job = await client.create_job(JobSpec(...))

Creates and verbs carry an Idempotency-Key of their own, so that a lost answer can be asked for again without acting
twice.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Self, TypeVar
from urllib.parse import quote

import msgspec

from onthedot.client.answers import BatchResult, ResultPage
from onthedot.client.transport import Transport
from onthedot.clock import Clock
from onthedot.model.job import JobSpec, JobStatus, JobView
from onthedot.model.key import ApiKey, ApiKeyCreated, ApiKeySpec
from onthedot.model.node import NodeView
from onthedot.model.preview import Explanation, Preview
from onthedot.model.run import RunView
from onthedot.model.schedule import Schedule
from onthedot.model.sync import SyncReport
from onthedot.model.timer import TimerSpec, TimerView

__all__ = ["AsyncClient"]

T = TypeVar("T")
PAGE = 500
NOTHING = type(None)


class _NewRuns(msgspec.Struct, frozen=True):
    runs: list[str]
    slots: list[str] = []


class AsyncClient:
    """Raises what `onthedot.errors` names; Unreachable when no server answers."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        key: str | None = None,
        *,
        timeout: float = 30.0,
        tries: int = 4,
        clock: Clock | None = None,
    ) -> None:
        self._http = Transport(url, key, timeout=timeout, tries=tries, clock=clock)

    @property
    def url(self) -> str:
        return self._http.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.close()

    # jobs

    async def create_job(self, spec: JobSpec, *, idempotency_key: str | None = None) -> JobView:
        return await self._http.call("POST", "/v1/jobs", JobView, body=spec, headers=_once(idempotency_key))

    async def create_many(self, specs: Sequence[JobSpec], *, idempotency_key: str | None = None) -> list[BatchResult]:
        """One answer per job, in order; a wrong one does not stop the others. At most 5,000 at a time."""
        return await self._http.call(
            "POST", "/v1/jobs/batch", list[BatchResult], body=list(specs), headers=_once(idempotency_key)
        )

    async def get_job(self, job_id: int) -> JobView:
        return await self._http.call("GET", f"/v1/jobs/{job_id}", JobView)

    async def get_job_by_key(self, key: str) -> JobView:
        return await self._http.call("GET", f"/v1/jobs/by-key/{quote(key, safe='')}", JobView)

    async def list_jobs(self, **filters: Any) -> ResultPage[JobView]:
        """One page. Filters: q, tag, status, target, schedule, owner, next_before, next_after, limit, cursor."""
        return await self._http.call("GET", "/v1/jobs", ResultPage[JobView], query=filters)

    def iter_jobs(self, **filters: Any) -> AsyncIterator[JobView]:
        """All of them, page by page as they are used."""
        return self._pages("/v1/jobs", ResultPage[JobView], filters)

    async def replace_job(self, job_id: int, spec: JobSpec, *, if_match: int | None = None) -> JobView:
        return await self._http.call("PUT", f"/v1/jobs/{job_id}", JobView, body=spec, headers=_match(if_match))

    async def put_job_by_key(self, key: str, spec: JobSpec, *, if_match: int | None = None) -> JobView:
        """Create the job of that key, or replace it."""
        path = f"/v1/jobs/by-key/{quote(key, safe='')}"
        return await self._http.call("PUT", path, JobView, body=spec, headers=_match(if_match))

    async def patch_job(self, job_id: int, patch: Mapping[str, Any], *, if_match: int | None = None) -> JobView:
        """A JSON merge patch (RFC 7396): the fields to change; None takes a field away."""
        return await self._http.call(
            "PATCH",
            f"/v1/jobs/{job_id}",
            JobView,
            body=dict(patch),
            headers=_match(if_match),
            media="application/merge-patch+json",
        )

    async def delete_job(self, job_id: int, *, if_match: int | None = None) -> None:
        await self._http.call("DELETE", f"/v1/jobs/{job_id}", NOTHING, headers=_match(if_match))

    async def pause_job(
        self,
        job_id: int,
        *,
        note: str | None = None,
        until: str | None = None,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> JobView:
        """`note`: why. `until` (RFC 3339): then it goes on by itself."""
        body = _given(note=note, until=until)
        return await self._http.call(
            "POST", f"/v1/jobs/{job_id}/pause", JobView, body=body, headers=_verb(idempotency_key, if_match)
        )

    async def resume_job(
        self, job_id: int, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        return await self._http.call(
            "POST", f"/v1/jobs/{job_id}/resume", JobView, headers=_verb(idempotency_key, if_match)
        )

    async def run_job(
        self,
        job_id: int,
        *,
        params: Mapping[str, Any] | None = None,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> RunView:
        """One run now, beside the schedule. `params`: its own, over those of the job."""
        body = _given(params=None if params is None else dict(params))
        return await self._http.call(
            "POST", f"/v1/jobs/{job_id}/run", RunView, body=body, headers=_verb(idempotency_key, if_match)
        )

    async def job_status(self, job_id: int) -> JobStatus:
        """In short: of the run that executes, else the next, else the last."""
        return await self._http.call("GET", f"/v1/jobs/{job_id}/status", JobStatus)

    async def backfill_job(
        self,
        job_id: int,
        start: str,
        end: str,
        *,
        force: bool = False,
        if_match: int | None = None,
        idempotency_key: str | None = None,
    ) -> list[str]:
        """Run the slots from `start` to `end` that were not done; the ids of the new runs."""
        body = {"start": start, "end": end, "force": force}
        path, headers = f"/v1/jobs/{job_id}/backfill", _verb(idempotency_key, if_match)
        return (await self._http.call("POST", path, _NewRuns, body=body, headers=headers)).runs

    async def slots_to_backfill(self, job_id: int, start: str, end: str, *, force: bool = False) -> list[str]:
        """The slots that `backfill_job` would run. Changes nothing."""
        body = {"start": start, "end": end, "force": force, "dry_run": True}
        path = f"/v1/jobs/{job_id}/backfill"
        return (await self._http.call("POST", path, _NewRuns, body=body, repeatable=True)).slots

    async def explain(self, job_id: int, at: str) -> Explanation:
        return await self._http.call("GET", f"/v1/jobs/{job_id}/explain", Explanation, query={"at": at})

    async def sync_jobs(
        self, source: str, specs: Iterable[JobSpec], *, prune: bool = False, dry_run: bool = False, **more: Any
    ) -> SyncReport:
        """Make the jobs of `source` exactly these. Changes nothing if one of them is wrong.

        More: `adopt=True` takes over jobs of these keys that are somebody else's; `former`, a name that the source had;
        `file`, which one it is (`host:/path`) if the source is only its name: PostgreSQL removes what came from it.
        """
        body = {"source": source, "jobs": list(specs), "prune": prune, "dry_run": dry_run, **more}
        return await self._http.call("POST", "/v1/jobs/sync", SyncReport, body=body, repeatable=True)

    # runs and dead letters

    async def list_runs(self, **filters: Any) -> ResultPage[RunView]:
        """One page, newest first. Filters: job_id, status, since, until, limit, cursor."""
        return await self._http.call("GET", "/v1/runs", ResultPage[RunView], query=filters)

    def iter_runs(self, **filters: Any) -> AsyncIterator[RunView]:
        return self._pages("/v1/runs", ResultPage[RunView], filters)

    async def get_run(self, run_id: str) -> RunView:
        return await self._http.call("GET", f"/v1/runs/{quote(run_id, safe='')}", RunView)

    async def run_logs(self, run_id: str) -> str:
        return await self._http.call("GET", f"/v1/runs/{quote(run_id, safe='')}/logs", str)

    async def cancel_run(self, run_id: str, *, idempotency_key: str | None = None) -> RunView:
        path = f"/v1/runs/{quote(run_id, safe='')}/cancel"
        return await self._http.call("POST", path, RunView, headers=_once(idempotency_key))

    async def retry_run(self, run_id: str, *, idempotency_key: str | None = None) -> RunView:
        """The same slot again, as a new run."""
        path = f"/v1/runs/{quote(run_id, safe='')}/retry"
        return await self._http.call("POST", path, RunView, headers=_once(idempotency_key))

    async def list_dead(self, **filters: Any) -> ResultPage[RunView]:
        """One page. Filters: job_id, limit, cursor."""
        return await self._http.call("GET", "/v1/dead", ResultPage[RunView], query=filters)

    def iter_dead(self, **filters: Any) -> AsyncIterator[RunView]:
        return self._pages("/v1/dead", ResultPage[RunView], filters)

    async def redrive(
        self,
        ids: Sequence[str] | None = None,
        *,
        job_id: int | None = None,
        limit: int = 1000,
        idempotency_key: str | None = None,
    ) -> list[str]:
        """New runs for the named dead letters, for those of one job, or for all; the ids of the new runs."""
        body: dict[str, Any] = {"limit": limit}
        body |= {} if ids is None else {"ids": list(ids)}
        body |= {} if job_id is None else {"job_id": job_id}
        made = await self._http.call("POST", "/v1/dead/redrive", _NewRuns, body=body, headers=_once(idempotency_key))
        return made.runs

    # timers, schedules

    async def create_timer(self, timer: TimerSpec, *, idempotency_key: str | None = None) -> TimerView:
        return await self._http.call("POST", "/timers", TimerView, body=timer, headers=_once(idempotency_key))

    async def get_timer(self, timer_id: int) -> TimerView:
        return await self._http.call("GET", f"/timers/{timer_id}", TimerView)

    async def preview(self, schedule: Schedule, *, after: str | None = None, count: int = 10) -> Preview:
        body: dict[str, Any] = {"schedule": schedule, "count": count} | ({} if after is None else {"after": after})
        return await self._http.call("POST", "/v1/preview", Preview, body=body, repeatable=True)

    # the cluster

    async def list_nodes(self) -> list[NodeView]:
        return (await self._http.call("GET", "/v1/nodes", ResultPage[NodeView])).items

    async def stats(self) -> dict[str, Any]:
        return await self._http.call("GET", "/v1/stats", dict[str, Any])

    async def health(self) -> dict[str, Any]:
        return await self._http.call("GET", "/healthz", dict[str, Any])

    async def ready(self) -> dict[str, Any]:
        """StoreUnavailable while it is not."""
        return await self._http.call("GET", "/readyz", dict[str, Any])

    async def create_key(self, spec: ApiKeySpec) -> ApiKeyCreated:
        """The key itself is in this answer and nowhere else, ever."""
        return await self._http.call("POST", "/v1/keys", ApiKeyCreated, body=spec)

    async def list_keys(self, tenant: str | None = None) -> list[ApiKey]:
        """Of your own tenant, unless you run the place and name another."""
        return (await self._http.call("GET", "/v1/keys", ResultPage[ApiKey], query=_of(tenant))).items

    async def revoke_key(self, key_id: int, tenant: str | None = None) -> None:
        await self._http.call("DELETE", f"/v1/keys/{key_id}", NOTHING, query=_of(tenant))

    async def _pages(self, path: str, kind: type[ResultPage[T]], filters: dict[str, Any]) -> AsyncIterator[T]:
        following: str | None = path
        query: dict[str, Any] | None = {"limit": PAGE, **filters}
        while following is not None:
            page = await self._http.call("GET", following, kind, query=query)
            for item in page.items:
                yield item
            following, query = page.next, None  # the address of the next page has the filters in it


def _of(tenant: str | None) -> dict[str, Any]:
    return {} if tenant is None else {"tenant": tenant}


def _once(key: str | None) -> dict[str, str]:
    return {"idempotency-key": key or str(uuid.uuid4())}


def _verb(key: str | None, version: int | None) -> dict[str, str]:
    return {**_once(key), **_match(version)}


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"if-match": f'"{version}"'}
