"""Response types that are not jobs, runs or nodes. Fields added by newer servers are ignored."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from onthedot.errors import FieldProblem

__all__ = ["BatchResult", "CreatedRuns", "ResultPage"]

T = TypeVar("T")


class ResultPage(msgspec.Struct, Generic[T], frozen=True):
    """One page of items. `next` is the URL of the next page; None on the last page."""

    items: list[T]
    next: str | None = None


class BatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result for one job of a batch: `status` 201 with its ID, or the errors."""

    status: int
    id: int | None = None
    key: str | None = None
    detail: str | None = None
    errors: list[FieldProblem] = msgspec.field(default_factory=list)


class CreatedRuns(msgspec.Struct, frozen=True):
    """IDs of runs that a request created, or the slots of those that it would create."""

    runs: list[str]
    slots: list[str] = []
