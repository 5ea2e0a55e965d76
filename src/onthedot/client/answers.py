"""What the server answers where it is no job, run or node. Fields that a newer server adds are ignored."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from onthedot.errors import FieldProblem

__all__ = ["BatchResult", "ResultPage"]

T = TypeVar("T")


class ResultPage(msgspec.Struct, Generic[T], frozen=True):
    """Some items, and the address of the next page; None on the last one."""

    items: list[T]
    next: str | None = None


class BatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """One job of a batch: `status` 201 with its id, or what is wrong with it."""

    status: int
    id: int | None = None
    key: str | None = None
    detail: str | None = None
    errors: list[FieldProblem] = msgspec.field(default_factory=list)
