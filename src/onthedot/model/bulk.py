"""Bulk operations: one verb for all jobs, or dead letters, that match a filter."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec

from onthedot.model.dead import Cause
from onthedot.model.job import JobState, Tag
from onthedot.model.struct import Strict

__all__ = [
    "BULK_VERBS",
    "DEAD_VERBS",
    "MOST_COUNTED",
    "MOST_IDS",
    "BackfillParams",
    "BulkCount",
    "BulkError",
    "BulkFilter",
    "BulkItem",
    "BulkOperation",
    "BulkRequest",
    "BulkState",
    "BulkVerb",
    "DiscardParams",
    "NoParams",
    "Note",
    "PauseParams",
    "RedriveParams",
    "RunParams",
    "TagParams",
]

BulkVerb = Literal["pause", "resume", "run", "delete", "tag", "backfill", "redrive", "discard"]
BulkState = Literal["running", "paused", "done", "aborted", "stopped"]
BULK_VERBS: tuple[BulkVerb, ...] = get_args(BulkVerb)
DEAD_VERBS = ("redrive", "discard")
"""Verbs on dead letters; the others are verbs on jobs."""
MOST_COUNTED = 10_000
"""What matches is counted so far."""
MOST_IDS = 10_000

Note = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class BulkFilter(Strict, frozen=True, kw_only=True, omit_defaults=True):
    """The filters of the list: of jobs (`q` to `next_after`), or of dead letters (`job_id` to `until`). Empty: all."""

    q: Text | None = None
    tag: Tag | None = None
    status: JobState | None = None
    target: Text | None = None
    schedule: Text | None = None
    owner: Text | None = None
    last_status: Literal["DONE", "FAILED", "CANCELLED", "SKIPPED"] | None = None
    failing: bool | None = None
    late: bool | None = None
    never_ran: bool | None = None
    ended: bool | None = None
    next_before: str | None = None
    next_after: str | None = None
    job_id: Annotated[int, msgspec.Meta(ge=1)] | None = None
    cause: Cause | None = None
    since: str | None = None
    until: str | None = None


class BulkRequest(Strict, frozen=True, kw_only=True):
    """Either `filter` or `ids`. `rate`: at most so many per second. `dry_run`: count, change nothing."""

    verb: BulkVerb
    filter: BulkFilter | None = None
    ids: Annotated[list[int | str], msgspec.Meta(min_length=1, max_length=MOST_IDS)] | None = None
    params: dict[str, Any] | None = None
    rate: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    dry_run: bool = False


class NoParams(Strict, frozen=True):
    """This verb takes none."""


class PauseParams(Strict, frozen=True, kw_only=True):
    note: Note | None = None
    until: str | None = None


class RunParams(Strict, frozen=True, kw_only=True):
    """`params` override those of each job for this run."""

    params: dict[str, Any] | None = None


class TagParams(Strict, frozen=True, kw_only=True):
    add: Annotated[list[Tag], msgspec.Meta(max_length=50)] = msgspec.field(default_factory=list)
    remove: Annotated[list[Tag], msgspec.Meta(max_length=50)] = msgspec.field(default_factory=list)


class BackfillParams(Strict, frozen=True, kw_only=True):
    """`by_slot`: with one job: its slots are counted and worked off, however many they are."""

    start: str
    end: str
    force: bool = False
    by_slot: bool = False


class RedriveParams(Strict, frozen=True, kw_only=True):
    """`first`: redrive so many first and wait for their results. `stop_at_failures`: stop when so many failed again."""

    first: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    stop_at_failures: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None


class DiscardParams(Strict, frozen=True, kw_only=True):
    note: Note | None = None


class BulkError(msgspec.Struct, frozen=True, kw_only=True):
    """Why the verb was refused for one job or dead letter."""

    id: int | str
    error: str


class BulkOperation(msgspec.Struct, frozen=True, kw_only=True):
    """A bulk operation and how far it has got. `total` ends at 10,000 unless `total_exact`; `errors`: the first 20."""

    id: int
    verb: BulkVerb
    state: BulkState
    total: int
    total_exact: bool
    done: int
    failed: int
    skipped: int
    errors: list[BulkError]
    filter: dict[str, Any] | None
    ids: int | None  # how many were given
    params: dict[str, Any]
    rate: int | None
    actor: str | None
    node: str | None  # which worked on it last
    reason: str | None  # why it was stopped
    failed_again: int  # of what was redriven, as far as it is watched
    waiting_for: int  # results of redriven runs that are waited for
    created_at: str
    updated_at: str
    finished_at: str | None

    @property
    def has_ended(self) -> bool:
        return self.finished_at is not None


class BulkItem(msgspec.Struct, frozen=True, kw_only=True):
    """One of those that match. `id` of a dead letter is that of its run."""

    id: int | str
    key: str | None


class BulkCount(msgspec.Struct, frozen=True, kw_only=True):
    """What a dry run answers: how many match now, and the first of them."""

    verb: BulkVerb
    total: int
    total_exact: bool
    sample: list[BulkItem]
