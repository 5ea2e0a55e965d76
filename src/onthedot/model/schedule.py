"""When: exactly one of cron, every, at, in, rrule; with zone, bounds, count and exclusions."""

from __future__ import annotations

from typing import Annotated

import msgspec

from onthedot.model.duration import Duration
from onthedot.model.struct import Strict

__all__ = ["SCHEDULE_KINDS", "UNNAMED_ZONE", "Schedule"]

SCHEDULE_KINDS = ("cron", "every", "at", "in", "rrule")
UNNAMED_ZONE = "".join(("U", "TC"))  # noqa: FLY002 - a literal would be the same object everywhere
"""The zone of a schedule that names none. Stored so, it is UTC for ever; what a user writes so gets DEFAULT_TZ. It is
an object of its own: who wrote "UTC" means it, and is told apart by `is`."""


class Schedule(Strict, frozen=True, kw_only=True, omit_defaults=True):
    """A schedule as written. What it means is decided in `timing`."""

    cron: str | None = None
    every: Duration | None = None
    at: str | None = None
    in_: Duration | None = msgspec.field(name="in", default=None)
    rrule: str | None = None
    tz: str = UNNAMED_ZONE
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
    def names_zone(self) -> bool:
        return self.tz is not UNNAMED_ZONE

    def in_default_zone(self, zone: str) -> Schedule:
        """This zone, if it names none itself."""
        if self.names_zone or zone == UNNAMED_ZONE:
            return self
        return msgspec.structs.replace(self, tz=zone)

    @property
    def one_off(self) -> bool:
        return self.at is not None or self.in_ is not None
