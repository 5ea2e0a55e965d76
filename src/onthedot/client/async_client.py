"""The HTTP API for asyncio programs.

    async with AsyncClient("http://127.0.0.1:8000") as client:
        job = await client.create_job(JobSpec(...))

Creates and actions send a generated Idempotency-Key, so that a request can be retried safely after a lost response.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeVar
from urllib.parse import quote

import msgspec

from onthedot.client.answers import BatchResult, ResultPage
from onthedot.client.async_changes import AsyncChanges
from onthedot.client.headers import if_match_header, once_header, verb_headers
from onthedot.client.transport import Transport
from onthedot.clock import Clock
from onthedot.model.bulk import BulkCount, BulkOperation, BulkVerb
from onthedot.model.callback import run_and_token
from onthedot.model.chains import ChainNeighbours
from onthedot.model.change_plan import ChangePlan
from onthedot.model.dead import DeadGroups, DeadLetterView, DiscardedLetters
from onthedot.model.destination import DestinationDetail, DestinationView
from onthedot.model.group import GroupView
from onthedot.model.job import JobSpec, JobStatus, JobView
from onthedot.model.key import ApiKey, ApiKeyCreated, ApiKeySpec
from onthedot.model.node import NodeName, NodeView
from onthedot.model.preview import Explanation, Preview
from onthedot.model.proof import Proof
from onthedot.model.run import RunView
from onthedot.model.run_comparison import RunComparison
from onthedot.model.schedule import Schedule
from onthedot.model.script import ScriptDetail, ScriptUpload, ScriptView
from onthedot.model.series import RunSeries, StatsSeries, Step
from onthedot.model.setting import SettingView
from onthedot.model.slots import ExplainedSlots, JobCalendar
from onthedot.model.sync import SyncReport
from onthedot.model.timer import TimerSpec, TimerView
from onthedot.model.upcoming import Forecast, UpcomingList
from onthedot.model.version import JobVersion

__all__ = ["AsyncClient"]

T = TypeVar("T")
PAGE = 500
NOTHING = type(None)


class _NewRuns(msgspec.Struct, frozen=True):
    runs: list[str]
    slots: list[str] = []


class AsyncClient(AsyncChanges):
    """A client for the HTTP API. Raises the exceptions of `onthedot.errors`; Unreachable if it can't connect."""

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
        """`ca`: a PEM file with the authorities that may have signed the server's certificate; None: the system's."""
        self._http = Transport(url, key, timeout=timeout, tries=tries, clock=clock, ca=ca)

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

    def iter_versions(self, job_id: int, **filters: Any) -> AsyncIterator[JobVersion]:
        """Iterate over the versions of a job, newest first, fetching pages as needed."""
        return self._pages(f"/v1/jobs/{job_id}/versions", ResultPage[JobVersion], filters)

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
        body = _given(note=note, until=until)
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
        body = _given(params=None if params is None else dict(params))
        return await self._http.call(
            "POST", f"/v1/jobs/{job_id}/run", RunView, body=body, headers=verb_headers(idempotency_key, if_match)
        )

    async def job_status(self, job_id: int) -> JobStatus:
        """Status of the executing run, else of the next, else of the last run."""
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
        """Run the slots from `start` to `end` that have not succeeded. Returns the IDs of the new runs."""
        body = {"start": start, "end": end, "force": force}
        path, headers = f"/v1/jobs/{job_id}/backfill", verb_headers(idempotency_key, if_match)
        return (await self._http.call("POST", path, _NewRuns, body=body, headers=headers)).runs

    async def slots_to_backfill(self, job_id: int, start: str, end: str, *, force: bool = False) -> list[str]:
        """The slots that `backfill_job` would run. Changes nothing."""
        body = {"start": start, "end": end, "force": force, "dry_run": True}
        path = f"/v1/jobs/{job_id}/backfill"
        return (await self._http.call("POST", path, _NewRuns, body=body, repeatable=True)).slots

    async def explain(self, job_id: int, at: str) -> Explanation:
        """Explain why a job fired, did not fire, or will fire at an instant (RFC 3339)."""
        return await self._http.call("GET", f"/v1/jobs/{job_id}/explain", Explanation, query={"at": at})

    async def explain_slots(
        self, job_id: int, since: str, until: str | None = None, *, limit: int = 1000
    ) -> ExplainedSlots:
        """What became of each slot of a range (RFC 3339; 7 days, unless it has an end), the newest first."""
        query = {"since": since, "until": until, "limit": limit}
        return await self._http.call("GET", f"/v1/jobs/{job_id}/explain", ExplainedSlots, query=query)

    async def calendar(
        self, job_id: int, *, since: str | None = None, until: str | None = None, tz: str | None = None
    ) -> JobCalendar:
        """Runs and planned slots of a job by days: 60 past and 30 to come, unless asked otherwise."""
        query = {"since": since, "until": until, "tz": tz}
        return await self._http.call("GET", f"/v1/jobs/{job_id}/calendar", JobCalendar, query=query)

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

    # runs and dead letters

    async def list_runs(self, **filters: Any) -> ResultPage[RunView]:
        """Get one page of runs, newest first. Filters: job_id, key, status, since, until, q (in the error), node,
        trigger, late, limit, cursor."""
        return await self._http.call("GET", "/v1/runs", ResultPage[RunView], query=filters)

    def iter_runs(self, **filters: Any) -> AsyncIterator[RunView]:
        """Iterate over all runs, newest first, fetching pages as needed."""
        return self._pages("/v1/runs", ResultPage[RunView], filters)

    async def get_run(self, run_id: str) -> RunView:
        """Get a run with all its attempts."""
        return await self._http.call("GET", f"/v1/runs/{quote(run_id, safe='')}", RunView)

    async def run_logs(self, run_id: str) -> str:
        """Get the output of a run: at most the last 64 KB."""
        return await self._http.call("GET", f"/v1/runs/{quote(run_id, safe='')}/logs", str)

    async def compare_runs(self, run_id: str, other: str | None = None) -> RunComparison:
        """Compare a run with another one, by default with the last one before it that succeeded."""
        path = f"/v1/runs/{quote(run_id, safe='')}/compare"
        return await self._http.call("GET", path, RunComparison, query={"with": other})

    async def run_bundle(self, run_id: str) -> dict[str, Any]:
        """Get the incident bundle of a run: all that is known of it in one JSON document, without secrets."""
        return await self._http.call("GET", f"/v1/runs/{quote(run_id, safe='')}/bundle", dict[str, Any])

    async def cancel_run(self, run_id: str, *, idempotency_key: str | None = None) -> RunView:
        """Cancel a pending run, or ask the node of an executing run to stop it."""
        path = f"/v1/runs/{quote(run_id, safe='')}/cancel"
        return await self._http.call("POST", path, RunView, headers=once_header(idempotency_key))

    async def retry_run(
        self, run_id: str, *, params: Mapping[str, Any] | None = None, idempotency_key: str | None = None
    ) -> RunView:
        """Retry a finished run as a new run of the same slot. `params`: those of the new run, if they are to differ."""
        path = f"/v1/runs/{quote(run_id, safe='')}/retry"
        body = None if params is None else {"params": dict(params)}
        return await self._http.call("POST", path, RunView, body=body, headers=once_header(idempotency_key))

    async def complete(
        self,
        callback: str,
        *,
        status: Literal["done", "failed"] = "done",
        result: Any = None,
        error: str | None = None,
        retryable: bool | None = None,
    ) -> RunView:
        """Report how a call ended that was accepted for later. `callback`: the URL that came with the call, in the
        header x-onthedot-callback; needs no API key."""
        run_id, token = run_and_token(callback)
        body = _given(status=status, result=result, error=error, retryable=retryable)
        path = f"/v1/runs/{run_id}/complete"
        return await self._http.call("POST", path, RunView, query={"token": token}, body=body, repeatable=True)

    async def progress(self, callback: str, *, percent: float | None = None, message: str | None = None) -> None:
        """Report how far a call has got that was accepted for later. `callback` as above."""
        run_id, token = run_and_token(callback)
        body = _given(percent=percent, message=message)
        path = f"/v1/runs/{run_id}/progress"
        await self._http.call("POST", path, NOTHING, query={"token": token}, body=body, repeatable=True)

    async def list_dead(self, **filters: Any) -> ResultPage[DeadLetterView]:
        """Get one page of dead letters. Filters: job_id, cause, since, until, discarded, limit, cursor."""
        return await self._http.call("GET", "/v1/dead", ResultPage[DeadLetterView], query=filters)

    def iter_dead(self, **filters: Any) -> AsyncIterator[DeadLetterView]:
        """Iterate over all dead letters, fetching pages as needed."""
        return self._pages("/v1/dead", ResultPage[DeadLetterView], filters)

    async def group_dead(self, **filters: Any) -> DeadGroups:
        """Group dead letters by cause, and by time with `window` (hour, day). Filters: job_id, cause, since, until."""
        return await self._http.call("GET", "/v1/dead/groups", DeadGroups, query=filters)

    async def discard(
        self,
        ids: Sequence[str] | None = None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        note: str | None = None,
        limit: int = 1000,
        idempotency_key: str | None = None,
    ) -> list[str]:
        """Close the given dead letters, or those that match `filter`, without retrying them. Returns their run IDs."""
        chosen = None if filter is None else dict(filter)
        body = _given(ids=None if ids is None else list(ids), filter=chosen, note=note, limit=limit)
        path, headers = "/v1/dead/discard", once_header(idempotency_key)
        return (await self._http.call("POST", path, DiscardedLetters, body=body, headers=headers)).discarded

    async def redrive(
        self,
        ids: Sequence[str] | None = None,
        *,
        job_id: int | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        limit: int = 1000,
        idempotency_key: str | None = None,
    ) -> list[str]:
        """Retry the given dead letters, those of one job, those that match `filter`, or all. Returns the IDs of the new
        runs. A few first, or at a rate: `start_operation("redrive", …)`."""
        chosen = None if filter is None else dict(filter)
        body = _given(limit=limit, ids=None if ids is None else list(ids), job_id=job_id, filter=chosen)
        made = await self._http.call(
            "POST", "/v1/dead/redrive", _NewRuns, body=body, headers=once_header(idempotency_key)
        )
        return made.runs

    # bulk operations

    async def start_operation(
        self,
        verb: BulkVerb,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        ids: Sequence[int | str] | None = None,
        params: Mapping[str, Any] | None = None,
        rate: int | None = None,
        idempotency_key: str | None = None,
    ) -> BulkOperation:
        """Apply a verb to all jobs (redrive: dead letters) that match `filter`, or to those with these IDs."""
        body = _bulk(verb, filter, ids, params, rate)
        return await self._http.call(
            "POST", "/v1/operations", BulkOperation, body=body, headers=once_header(idempotency_key)
        )

    async def count_operation(
        self,
        verb: BulkVerb,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        ids: Sequence[int | str] | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> BulkCount:
        """How many match, and the first of them. Changes nothing."""
        body = {**_bulk(verb, filter, ids, params, None), "dry_run": True}
        return await self._http.call("POST", "/v1/operations", BulkCount, body=body, repeatable=True)

    async def get_operation(self, operation_id: int) -> BulkOperation:
        """Get a bulk operation with its progress."""
        return await self._http.call("GET", f"/v1/operations/{operation_id}", BulkOperation)

    async def list_operations(self, **filters: Any) -> ResultPage[BulkOperation]:
        """Get one page of bulk operations, newest first. Filters: limit, cursor."""
        return await self._http.call("GET", "/v1/operations", ResultPage[BulkOperation], query=filters)

    def iter_operations(self, **filters: Any) -> AsyncIterator[BulkOperation]:
        """Iterate over all bulk operations, newest first, fetching pages as needed."""
        return self._pages("/v1/operations", ResultPage[BulkOperation], filters)

    async def abort_operation(self, operation_id: int, *, idempotency_key: str | None = None) -> BulkOperation:
        """Stop a bulk operation after its current portion."""
        path, headers = f"/v1/operations/{operation_id}/abort", once_header(idempotency_key)
        return await self._http.call("POST", path, BulkOperation, headers=headers)

    # timers, schedules

    async def create_timer(self, timer: TimerSpec, *, idempotency_key: str | None = None) -> TimerView:
        """Create a timer that sends one POST when it expires."""
        return await self._http.call("POST", "/timers", TimerView, body=timer, headers=once_header(idempotency_key))

    async def get_timer(self, timer_id: int) -> TimerView:
        """Get the time left on a timer."""
        return await self._http.call("GET", f"/timers/{timer_id}", TimerView)

    async def preview(self, schedule: Schedule, *, after: str | None = None, count: int = 10) -> Preview:
        """Compute the next fire times of a schedule."""
        body: dict[str, Any] = {"schedule": schedule, "count": count} | ({} if after is None else {"after": after})
        return await self._http.call("POST", "/v1/preview", Preview, body=body, repeatable=True)

    # the cluster

    async def list_nodes(self) -> list[NodeView]:
        """List running and recently lost nodes."""
        return (await self._http.call("GET", "/v1/nodes", ResultPage[NodeView])).items

    async def node_names(self, ids: Iterable[str]) -> dict[str, str]:
        """Get the names of nodes by ID, up to 100, also of nodes that have stopped. Unknown ones are left out."""
        query = {"ids": ",".join(ids)}
        found = await self._http.call("GET", "/v1/nodes/names", ResultPage[NodeName], query=query)
        return {node.id: node.name for node in found.items}

    async def drain_node(self, node_id: str, *, idempotency_key: str | None = None) -> NodeView:
        """Let a node finish what it runs and claim nothing more, until it is started again."""
        path, headers = f"/v1/nodes/{quote(node_id, safe='')}/drain", once_header(idempotency_key)
        return await self._http.call("POST", path, NodeView, headers=headers)

    async def pause_all(self, *, note: str | None = None, idempotency_key: str | None = None) -> dict[str, Any]:
        """Pause the whole installation: only runs that are requested explicitly start."""
        headers = once_header(idempotency_key)
        return await self._http.call("POST", "/v1/pause", dict[str, Any], body={"note": note}, headers=headers)

    async def resume_all(self, *, idempotency_key: str | None = None) -> dict[str, Any]:
        """Resume the whole installation."""
        return await self._http.call("POST", "/v1/resume", dict[str, Any], headers=once_header(idempotency_key))

    async def list_destinations(self) -> list[DestinationView]:
        """List destinations: who is called, their circuit breakers, and how many runs wait for them."""
        return (await self._http.call("GET", "/v1/destinations", ResultPage[DestinationView])).items

    async def get_destination(self, destination: str) -> DestinationDetail:
        """Get one destination ("https://example.com", or a broker) with its jobs and their last failures."""
        path = f"/v1/destinations/{quote(destination, safe='')}"
        return await self._http.call("GET", path, DestinationDetail)

    async def list_groups(self) -> list[GroupView]:
        """List concurrency groups: how many runs are running, how many may, and how many wait."""
        return (await self._http.call("GET", "/v1/groups", ResultPage[GroupView])).items

    async def stats(self) -> dict[str, Any]:
        """Get totals of jobs, runs and dead letters."""
        return await self._http.call("GET", "/v1/stats", dict[str, Any])

    async def stats_series(
        self, step: Step = "minute", *, since: str | None = None, until: str | None = None
    ) -> StatsSeries:
        """Get statistics per minute, hour or day. `since`, `until`: RFC 3339."""
        query = {"step": step, "since": since, "until": until}
        return await self._http.call("GET", "/v1/stats/series", StatsSeries, query=query)

    async def upcoming(self, *, until: str | None = None, limit: int = 50, cursor: str | None = None) -> UpcomingList:
        """Get one page of the next firing of each job, in order of time."""
        query = {"until": until, "limit": limit, "cursor": cursor}
        return await self._http.call("GET", "/v1/upcoming", UpcomingList, query=query)

    async def forecast(self, *, hours: int = 24) -> Forecast:
        """Get starts per minute of the next hours."""
        return await self._http.call("GET", "/v1/forecast", Forecast, query={"hours": hours})

    async def plan(
        self,
        *,
        jobs: Iterable[JobSpec] | None = None,
        removed: Iterable[str] = (),
        job_id: int | None = None,
        key: str | None = None,
        spec: JobSpec | None = None,
        patch: dict[str, Any] | None = None,
        days: int = 30,
    ) -> ChangePlan:
        """Which firings a change would add, move and remove: of `jobs`, or of one job with a new spec or a merge
        patch. Changes nothing."""
        body: dict[str, Any] = {"days": days, "id": job_id, "key": key, "spec": spec, "patch": patch}
        body |= {"jobs": None if jobs is None else list(jobs), "removed": list(removed) or None}
        sent = {name: value for name, value in body.items() if value is not None}
        return await self._http.call("POST", "/v1/plan", ChangePlan, body=sent, repeatable=True)

    async def settings(self) -> list[SettingView]:
        """List the settings in force on the node that answers, and where each comes from."""
        return (await self._http.call("GET", "/v1/settings", ResultPage[SettingView])).items

    async def proof(self) -> Proof:
        """Get the proof: slots of the last 24 hours that should have been decided, and those that were."""
        return await self._http.call("GET", "/v1/proof", Proof)

    async def run_series(self, job_id: int, *, limit: int = 100) -> RunSeries:
        """Get lateness and duration of the last runs of a job."""
        return await self._http.call("GET", f"/v1/jobs/{job_id}/series", RunSeries, query={"limit": limit})

    async def health(self) -> dict[str, Any]:
        """Liveness of the node."""
        return await self._http.call("GET", "/healthz", dict[str, Any])

    async def ready(self) -> dict[str, Any]:
        """Readiness of the node. Raises StoreUnavailable while it is not ready."""
        return await self._http.call("GET", "/readyz", dict[str, Any])

    async def create_key(self, spec: ApiKeySpec, *, idempotency_key: str | None = None) -> ApiKeyCreated:
        """Create an API key. Only this response contains the key itself, and that to a repeat with the same
        `idempotency_key` by the same API key; the first key of a server can't be asked for again."""
        headers = {} if idempotency_key is None else once_header(idempotency_key)
        return await self._http.call("POST", "/v1/keys", ApiKeyCreated, body=spec, headers=headers)

    async def list_keys(self, tenant: str | None = None) -> list[ApiKey]:
        """List API keys of your tenant; admins of the tenant `default` can name another."""
        return (await self._http.call("GET", "/v1/keys", ResultPage[ApiKey], query=_of(tenant))).items

    async def revoke_key(self, key_id: int, tenant: str | None = None) -> None:
        """Revoke an API key."""
        await self._http.call("DELETE", f"/v1/keys/{key_id}", NOTHING, query=_of(tenant))

    # scripts

    async def upload_script(
        self, code: str, *, name: str | None = None, idempotency_key: str | None = None
    ) -> ScriptView:
        """Upload a script for jobs to use by its ID. The same code again changes nothing."""
        body, headers = ScriptUpload(code=code, name=name), once_header(idempotency_key)
        return await self._http.call("POST", "/v1/scripts", ScriptView, body=body, headers=headers)

    async def list_scripts(self, **filters: Any) -> ResultPage[ScriptView]:
        """Get one page of uploaded scripts. Filters: limit, cursor."""
        return await self._http.call("GET", "/v1/scripts", ResultPage[ScriptView], query=filters)

    async def get_script(self, script_id: str) -> ScriptDetail:
        """Get an uploaded script with its code and the jobs that use it."""
        return await self._http.call("GET", f"/v1/scripts/{quote(script_id, safe=':')}", ScriptDetail)

    async def delete_script(self, script_id: str) -> None:
        """Delete an uploaded script. Raises Conflict while a job uses it."""
        await self._http.call("DELETE", f"/v1/scripts/{quote(script_id, safe=':')}", NOTHING)

    async def _pages(self, path: str, kind: type[ResultPage[T]], filters: dict[str, Any]) -> AsyncIterator[T]:
        following: str | None = path
        query: dict[str, Any] | None = {"limit": PAGE, **filters}
        while following is not None:
            page = await self._http.call("GET", following, kind, query=query)
            for item in page.items:
                yield item
            following, query = self._http.local(page.next), None  # the URL of the next page includes the filters


def _of(tenant: str | None) -> dict[str, Any]:
    return {} if tenant is None else {"tenant": tenant}


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _bulk(
    verb: BulkVerb,
    chosen: Mapping[str, Any] | None,
    ids: Sequence[int | str] | None,
    params: Mapping[str, Any] | None,
    rate: int | None,
) -> dict[str, Any]:
    return _given(
        verb=verb,
        filter=None if chosen is None else dict(chosen),
        ids=None if ids is None else list(ids),
        params=None if params is None else dict(params),
        rate=rate,
    )
