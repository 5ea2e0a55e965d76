"""What a schedule will do, and what it did at one instant."""

from __future__ import annotations

import msgspec

from onthedot.model.run import RunView

__all__ = ["Explanation", "Preview"]


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    fires: list[str]
    description: str
    remarks: list[str]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """`slot`: is `at` an instant of the schedule? `run`: its entry, if there is one. `because` says it in words."""

    at: str
    slot: bool
    because: str
    previous: str | None
    next: str | None
    run: RunView | None
    on_success: list[str] = msgspec.field(default_factory=list)  # keys of the jobs that follow a run of this one
    on_failure: list[str] = msgspec.field(default_factory=list)
    on_finish: list[str] = msgspec.field(default_factory=list)
