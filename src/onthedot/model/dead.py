"""Dead letters: runs that failed for good, and how they are selected, grouped and closed."""

from __future__ import annotations

from typing import Annotated

import msgspec

from onthedot.model.run import RunView
from onthedot.model.struct import Strict

__all__ = ["Cause", "DeadFilter", "DeadGroup", "DeadGroups", "DeadLetterView", "DiscardNote", "DiscardedLetters"]

Cause = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class DeadFilter(Strict, frozen=True, kw_only=True, omit_defaults=True):
    """Which dead letters. `since`, `until`: when they failed, both included. Empty: all."""

    job_id: Annotated[int, msgspec.Meta(ge=1)] | None = None
    cause: Cause | None = None
    since: str | None = None
    until: str | None = None


class DiscardNote(msgspec.Struct, frozen=True, kw_only=True):
    """Who closed a dead letter without redriving it, and why."""

    note: str | None
    by: str | None
    at: str


class DeadLetterView(RunView, frozen=True, kw_only=True):
    """The run, and why it failed in short: what dead letters are grouped by."""

    cause: str = "unknown"
    discarded: DiscardNote | None = None


class DeadGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters with the same cause. `job_id`: of the job, if all are of one."""

    cause: str
    count: int
    jobs: int
    first_at: str
    last_at: str
    job_id: int | None = None


class DeadGroups(msgspec.Struct, frozen=True, kw_only=True):
    """Groups, the one that failed last first. Not `exact`: only the last 10,000 that failed were looked at."""

    items: list[DeadGroup]
    exact: bool


class DiscardedLetters(msgspec.Struct, frozen=True, kw_only=True):
    """The run IDs of the dead letters that were closed."""

    discarded: list[str]
