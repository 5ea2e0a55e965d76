"""When: exactly one of cron, every, at, in, rrule; with zone, bounds, count and exclusions."""

from __future__ import annotations

from typing import Annotated

import msgspec

from onthedot.model.duration import Duration
from onthedot.model.struct import Strict

__all__ = ["SCHEDULE_KINDS", "Schedule"]

SCHEDULE_KINDS = ("cron", "every", "at", "in", "rrule")


class Schedule(Strict, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule as written. What it means is decided in `timing`."""

    cron: str | None = None
    every: Duration | None = None
    at: str | None = None
    in_: Duration | None = msgspec.field(name="in", default=None)
    rrule: str | None = None
    tz: str = "UTC"
    start: str | None = None
    end: str | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None = None
    exclude: list[str] | None = None

    @property
    def kind(self) -> str:
        """Which of SCHEDULE_KINDS this is; "" when none is given."""
        for kind, value in zip(SCHEDULE_KINDS, (self.cron, self.every, self.at, self.in_, self.rrule), strict=True):
            if value is not None:
                return kind
        return ""

    @property
    def one_off(self) -> bool:
        return self.at is not None or self.in_ is not None
