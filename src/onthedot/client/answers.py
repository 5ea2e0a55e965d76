"""What the server answers where it is no job, run or node. Fields that a newer server adds are ignored."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.run import RunView

__all__ = ["BatchAnswer", "Explanation", "Page", "Preview", "SyncReport"]

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """Some items, and the address of the next page; None on the last one."""

    items: list[T]
    next: str | None = None


class BatchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One job of a batch: `status` 201 with its id, or what is wrong with it."""

    status: int
    id: int | None = None
    key: str | None = None
    detail: str | None = None
    errors: list[FieldProblem] = msgspec.field(default_factory=list)


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    fires: list[str]
    description: str
    remarks: list[str]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    at: str
    slot: bool
    because: str
    previous: str | None
    next: str | None
    run: RunView | None


class SyncReport(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of the jobs that a sync made, changed, left alone and removed (or would, in a dry run)."""

    created: list[str]
    updated: list[str]
    unchanged: list[str]
    removed: list[str]
