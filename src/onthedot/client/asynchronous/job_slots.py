"""The slots of a job: what became of them, backfill, skips."""

from __future__ import annotations

from onthedot.client.answers import CreatedRuns
from onthedot.client.asynchronous.area import AsyncArea
from onthedot.client.headers import verb_headers
from onthedot.model.job import JobView
from onthedot.model.preview import Explanation
from onthedot.model.series import RunSeries
from onthedot.model.slots import ExplainedSlots, JobCalendar
from onthedot.model.upcoming_slots import UpcomingSlots

__all__ = ["AsyncJobSlots"]


class AsyncJobSlots(AsyncArea):
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
        return (await self._http.call("POST", path, CreatedRuns, body=body, headers=headers)).runs

    async def slots_to_backfill(self, job_id: int, start: str, end: str, *, force: bool = False) -> list[str]:
        """The slots that `backfill_job` would run. Changes nothing."""
        body = {"start": start, "end": end, "force": force, "dry_run": True}
        path = f"/v1/jobs/{job_id}/backfill"
        return (await self._http.call("POST", path, CreatedRuns, body=body, repeatable=True)).slots

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

    async def run_series(self, job_id: int, *, limit: int = 100) -> RunSeries:
        """Get lateness and duration of the last runs of a job."""
        return await self._http.call("GET", f"/v1/jobs/{job_id}/series", RunSeries, query={"limit": limit})

    async def upcoming_slots(self, job_id: int, *, count: int = 10) -> UpcomingSlots:
        """When a job will fire, and which slots to come were skipped."""
        return await self._http.call("GET", f"/v1/jobs/{job_id}/upcoming", UpcomingSlots, query={"count": count})

    async def skip_slot(
        self, job_id: int, slot: str, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        """Skip a slot (RFC 3339) that has not come yet."""
        path, headers = f"/v1/jobs/{job_id}/skip", verb_headers(idempotency_key, if_match)
        return await self._http.call("POST", path, JobView, body={"slot": slot}, headers=headers)

    async def unskip_slot(
        self, job_id: int, slot: str, *, if_match: int | None = None, idempotency_key: str | None = None
    ) -> JobView:
        """Take back the skip of a slot that has not come yet."""
        path, headers = f"/v1/jobs/{job_id}/unskip", verb_headers(idempotency_key, if_match)
        return await self._http.call("POST", path, JobView, body={"slot": slot}, headers=headers)
