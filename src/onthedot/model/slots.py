"""What became of the slots of a job, one by one and by days. All times RFC 3339."""

from __future__ import annotations

from typing import Literal

import msgspec

from onthedot.model.run import RunStatus

__all__ = ["CalendarDay", "ExplainedSlot", "ExplainedSlots", "JobCalendar", "SlotStatus"]

SlotStatus = Literal["fired", "skipped", "planned", "missing"]


class ExplainedSlot(msgspec.Struct, frozen=True, kw_only=True):
    """`run_id` and `outcome`: of a slot that was fired, its last run. `reason`: of a skipped one. `until` and `count`:
    it stands for a range of skipped slots of a former schedule, of which only the first and the last are known."""

    slot: str
    status: SlotStatus
    because: str
    run_id: str | None = None
    outcome: RunStatus | None = None
    reason: str | None = None
    until: str | None = None
    count: int | None = None


class ExplainedSlots(msgspec.Struct, frozen=True, kw_only=True):
    """The newest slot first. `next` is the URL of the next page, null on the last page."""

    job_id: int
    since: str
    until: str
    items: list[ExplainedSlot]
    next: str | None


class CalendarDay(msgspec.Struct, frozen=True, kw_only=True):
    """A day from `since` to before `until`. Ended runs by status, also those started manually; `skipped` and `planned`
    are slots; `running`: runs that are executing, or wait for another attempt."""

    date: str
    since: str
    until: str
    done: int
    failed: int
    skipped: int
    cancelled: int
    running: int
    planned: int


class JobCalendar(msgspec.Struct, frozen=True, kw_only=True):
    """`complete` false: there are too many runs; those before `counted_since` are not counted."""

    job_id: int
    tz: str
    complete: bool
    counted_since: str | None
    items: list[CalendarDay]
