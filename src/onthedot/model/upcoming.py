"""What is to come: next firings, and starts per minute. All times RFC 3339."""

from __future__ import annotations

import msgspec

__all__ = ["BusyMinute", "Forecast", "ForecastJob", "UpcomingFiring", "UpcomingList"]


class UpcomingFiring(msgspec.Struct, frozen=True, kw_only=True):
    """The next firing of a job. `more`: how often it fires after that, before `until` of the list. Null: more than
    100,000 times, or its schedule has a `count`; then `more_at_most` says how often at most."""

    job_id: int
    key: str | None
    name: str | None
    at: str
    schedule: str
    target: str
    more: int | None
    more_at_most: int | None = None


class UpcomingList(msgspec.Struct, frozen=True, kw_only=True):
    """`next` is the URL of the next page, null on the last page."""

    until: str
    items: list[UpcomingFiring]
    next: str | None


class ForecastJob(msgspec.Struct, frozen=True, kw_only=True):
    job_id: int
    key: str | None
    name: str | None
    starts: int


class BusyMinute(msgspec.Struct, frozen=True, kw_only=True):
    """`jobs`: some of those that fire in it, the most frequent first."""

    at: str
    starts: int
    jobs: list[ForecastJob]


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Starts in each minute from `since` on. `jobs`: how many it covers; `complete` false: there are more, and only
    those with the earliest next runs are covered. `capacity`: runs that all live nodes can carry out at the same time.
    `measured_per_minute`: most firings in one minute of the last 24 hours."""

    since: str
    until: str
    computed_at: str
    jobs: int
    complete: bool
    capacity: int
    measured_per_minute: int
    starts: list[int]
    busiest: list[BusyMinute]
