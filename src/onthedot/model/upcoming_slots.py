"""The slots to come of one job."""

from __future__ import annotations

import msgspec

from onthedot.model.job import JobState

__all__ = ["LeftOutSlot", "UpcomingSlots"]


class LeftOutSlot(msgspec.Struct, frozen=True, kw_only=True):
    """A slot to come that a user skipped. `at`: when that was done. `actor`: by whom (see versions)."""

    slot: str
    run_id: str
    at: str
    actor: str
    actor_kind: str


class UpcomingSlots(msgspec.Struct, frozen=True, kw_only=True):
    """`fires`: the next slots at which the job will fire; if it is paused: at which it would. `skipped`: slots to come
    that were skipped."""

    state: JobState
    fires: list[str]
    skipped: list[LeftOutSlot]
