"""What is to come: timers, previews of schedules and changes, upcoming firings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onthedot.client.asynchronous.area import AsyncArea
from onthedot.client.headers import once_header
from onthedot.model.change_plan import ChangePlan
from onthedot.model.job import JobSpec
from onthedot.model.preview import Preview
from onthedot.model.schedule import Schedule
from onthedot.model.timer import TimerSpec, TimerView
from onthedot.model.upcoming import Forecast, UpcomingList

__all__ = ["AsyncSchedules"]


class AsyncSchedules(AsyncArea):
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

    async def upcoming(self, *, until: str | None = None, limit: int = 50, cursor: str | None = None) -> UpcomingList:
        """Get one page of the next firing of each job, in order of time."""
        query = {"until": until, "limit": limit, "cursor": cursor}
        return await self._http.call("GET", "/v1/upcoming", UpcomingList, query=query)

    async def forecast(self, *, hours: int = 24) -> Forecast:
        """Get starts per minute of the next hours."""
        return await self._http.call("GET", "/v1/forecast", Forecast, query={"hours": hours})
