"""What is to come: timers, previews of schedules and changes, upcoming firings."""

from __future__ import annotations

from typing import Any

from onthedot.client.blocking.area import BlockingArea
from onthedot.model.change_plan import ChangePlan
from onthedot.model.preview import Preview
from onthedot.model.schedule import Schedule
from onthedot.model.timer import TimerSpec, TimerView
from onthedot.model.upcoming import Forecast, UpcomingList

__all__ = ["BlockingSchedules"]


class BlockingSchedules(BlockingArea):
    def create_timer(self, timer: TimerSpec, *, idempotency_key: str | None = None) -> TimerView:
        return self._run(self._async.create_timer(timer, idempotency_key=idempotency_key))

    def get_timer(self, timer_id: int) -> TimerView:
        return self._run(self._async.get_timer(timer_id))

    def preview(self, schedule: Schedule, *, after: str | None = None, count: int = 10) -> Preview:
        return self._run(self._async.preview(schedule, after=after, count=count))

    def plan(self, **change: Any) -> ChangePlan:
        return self._run(self._async.plan(**change))

    def upcoming(self, *, until: str | None = None, limit: int = 50, cursor: str | None = None) -> UpcomingList:
        return self._run(self._async.upcoming(until=until, limit=limit, cursor=cursor))

    def forecast(self, *, hours: int = 24) -> Forecast:
        return self._run(self._async.forecast(hours=hours))
