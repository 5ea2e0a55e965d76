"""Which jobs a list shows, and in which order."""

from __future__ import annotations

import typing
from typing import Literal

import msgspec

from onthedot.errors import Invalid
from onthedot.model.job import JobState
from onthedot.model.schedule import SCHEDULE_KINDS
from onthedot.model.targets.registry import target_types
from onthedot.store.paging import fingerprint

__all__ = ["LAST_STATUSES", "SORTS", "JobFilter", "LastStatus", "asked_of", "check_words"]

STATES: tuple[str, ...] = typing.get_args(JobState)
LastStatus = Literal["DONE", "FAILED", "CANCELLED", "SKIPPED"]
LAST_STATUSES: tuple[str, ...] = typing.get_args(LastStatus)
SORTS = ("name", "-name", "next", "-next", "last", "-last")


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    q: str | None = None  # words, in any case (see `search_words`)
    tag: str | None = None
    status: str | None = None
    target: str | None = None
    schedule: str | None = None
    owner: str | None = None
    last_status: str | None = None
    """DONE, FAILED: how the last run ended that was carried out. CANCELLED, SKIPPED: of all that ended the newest."""
    failing: bool | None = None  # the last run that was carried out failed
    late: bool | None = None  # the last run began late, or the next one is overdue
    never_ran: bool | None = None  # no run was carried out to its end
    ended: bool | None = None
    next_before: int | None = None  # ms; the next run is before this
    next_after: int | None = None  # ms; the next run is at this or later
    sort: str | None = None  # one of SORTS; None: the order of what drives the list
    limit: int = 50
    cursor: str | None = None


def check_words(wanted: JobFilter) -> None:
    for name, given, accepted in (
        ("status", wanted.status, STATES),
        ("target", wanted.target, target_types()),
        ("schedule", wanted.schedule, SCHEDULE_KINDS),
        ("last_status", wanted.last_status, LAST_STATUSES),
        ("sort", wanted.sort, SORTS),
    ):
        if given is not None and given not in accepted:
            raise Invalid.one(name, "unknown", given=given, accepted=", ".join(accepted))


def asked_of(wanted: JobFilter) -> str:
    """What a cursor belongs to."""
    return fingerprint("jobs", msgspec.structs.astuple(msgspec.structs.replace(wanted, limit=0, cursor=None)))
