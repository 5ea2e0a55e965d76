"""Verbs on runs: start one, fill a gap, look, stop, try again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from onthedot.errors import Invalid, NotFound
from onthedot.model.duration import SECOND
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.job import JobStatus, JobView
from onthedot.model.run import RecentRun, RunView
from onthedot.service.base import ServiceBase
from onthedot.service.repeats import IdempotencyKey, idempotency
from onthedot.store import Page, RunFilter
from onthedot.telemetry import emit

__all__ = ["RunVerbs"]

BACKFILL_LIMIT = 1000
LAST_RUNS = 20  # among which the last that was not skipped is looked for


class RunVerbs(ServiceBase):
    async def pause_job(
        self,
        tenant: int,
        job_id: int,
        if_match: int | None = None,
        idempotency_key: IdempotencyKey | None = None,
        note: str | None = None,
        until: str | None = None,
    ) -> JobView:
        """`until` (RFC 3339): then it goes on by itself."""
        repeat = idempotency("pause", idempotency_key, job_id, body=(note, until))
        ends = None if until is None else _instant("until", until)
        job = await self.store.pause_job(tenant, job_id, note=note, until=ends, if_match=if_match, idempotency=repeat)
        emit("job.changed", tenant=tenant, job_id=job_id)
        await self.hint_orders()
        return job

    async def resume_job(
        self, tenant: int, job_id: int, if_match: int | None = None, idempotency_key: IdempotencyKey | None = None
    ) -> JobView:
        repeat = idempotency("resume", idempotency_key, job_id)
        job = await self.store.resume_job(tenant, job_id, if_match=if_match, idempotency=repeat)
        emit("job.changed", tenant=tenant, job_id=job_id)
        await self.hint(job)
        return job

    async def run_job(
        self,
        tenant: int,
        job_id: int,
        idempotency_key: IdempotencyKey | None = None,
        if_match: int | None = None,
        params: dict[str, Any] | None = None,
    ) -> RunView:
        """One run now, beside the schedule; also of a paused or ended job. `params`: its own, over those of the job."""
        repeat = idempotency("run", idempotency_key, job_id, body=params)
        run = await self.store.run_job(tenant, job_id, params=params, if_match=if_match, idempotency=repeat)
        await self.hint_now()
        return run

    async def backfill_job(
        self,
        tenant: int,
        job_id: int,
        start: str,
        end: str,
        force: bool = False,
        limit: int = BACKFILL_LIMIT,
        idempotency_key: IdempotencyKey | None = None,
        if_match: int | None = None,
    ) -> list[str]:
        """Run the slots from `start` to `end` (RFC 3339) that were not done. Answers the ids of the new runs."""
        first, last = _span(start, end)
        repeat = idempotency("backfill", idempotency_key, job_id, body=(start, end, force, limit))
        ids = await self.store.backfill_job(
            tenant, job_id, start=first, end=last, force=force, limit=limit, if_match=if_match, idempotency=repeat
        )
        if ids:
            await self.hint_now()
        return ids

    async def slots_to_backfill(
        self, tenant: int, job_id: int, start: str, end: str, force: bool = False, limit: int = BACKFILL_LIMIT
    ) -> list[str]:
        """What `backfill_job` would run, as instants. Changes nothing."""
        first, last = _span(start, end)
        slots = await self.store.slots_to_backfill(tenant, job_id, start=first, end=last, force=force, limit=limit)
        return [format_instant(slot) for slot in slots]

    async def job_status(self, tenant: int, job_id: int) -> JobStatus:
        """In short: the run that executes, else the next, else the last."""
        job = await self.store.get_job(tenant, job_id)
        run = await self.store.run_at_present(tenant, job_id)
        if run is None:
            ended = (await self.store.list_runs(tenant, RunFilter(job_id=job_id, limit=LAST_RUNS))).items
            run = next((each for each in ended if each.status != "SKIPPED"), ended[0] if ended else None)
        at = None if run is None else (parse_rfc3339(run.scheduled_for) or 0) // SECOND
        return JobStatus(
            execution_time=at,
            key=None if at is None else f"{at}-{job_id}",
            job_id=job_id,
            user_id=job.owner,
            status=None if run is None else run.status,
            attempt=0 if run is None else run.attempt,
        )

    async def list_runs(self, tenant: int, wanted: RunFilter, key: str | None = None) -> Page[RunView]:
        """`key`: of the job; one that no job has gives no runs, as does one of another job than `job_id`."""
        if key is not None:
            try:
                job_id = (await self.store.get_job_by_key(tenant, key)).id
            except NotFound:
                return Page(items=[], next=None)
            if wanted.job_id not in (None, job_id):
                return Page(items=[], next=None)
            wanted = msgspec.structs.replace(wanted, job_id=job_id)
        return await self.store.list_runs(tenant, wanted)

    async def recent_runs(self, tenant: int, job_ids: Sequence[int]) -> dict[int, list[RecentRun]]:
        """The last 20 runs that ended of each of up to 100 jobs, the newest first, in one question."""
        return await self.store.recent_runs(tenant, job_ids)

    async def get_run(self, tenant: int, run_id: str) -> RunView:
        return await self.store.get_run(tenant, run_id)

    async def run_logs(self, tenant: int, run_id: str) -> str | None:
        return await self.store.run_logs(tenant, run_id)

    async def cancel_run(
        self, tenant: int, run_id: str, idempotency_key: IdempotencyKey | None = None, if_match: int | None = None
    ) -> RunView:
        repeat = idempotency("cancel", idempotency_key, run_id)
        run = await self.store.cancel_run(tenant, run_id, if_match=if_match, idempotency=repeat)
        await self.hint_orders()
        return run

    async def retry_run(
        self,
        tenant: int,
        run_id: str,
        idempotency_key: IdempotencyKey | None = None,
        if_match: int | None = None,
        params: dict[str, Any] | None = None,
    ) -> RunView:
        """A new run of the same slot: a terminal run never changes. `params`: its own, instead of those it had."""
        repeat = idempotency("retry", idempotency_key, run_id, body=params)
        run = await self.store.retry_run(tenant, run_id, params=params, if_match=if_match, idempotency=repeat)
        await self.hint_now()
        return run


def _span(start: str, end: str) -> tuple[int, int]:
    first, last = _instant("start", start), _instant("end", end)
    if last < first:
        raise Invalid.one("end", "is before start", given=end, accepted=f"a timestamp after {start}")
    return first, last


def _instant(name: str, text: str) -> int:
    ms = parse_rfc3339(text)
    if ms is None:
        raise Invalid.one(name, "not a valid timestamp", given=text, accepted="RFC 3339, such as 2026-03-01T00:00:00Z")
    return ms
