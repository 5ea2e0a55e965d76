"""Rows of `operations`, and what the API shows of one."""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.errors import NotFound
from onthedot.model.actor import ITSELF, ChangeActor
from onthedot.model.bulk import BulkError, BulkFilter, BulkOperation, BulkState, BulkVerb
from onthedot.model.instant import format_instant
from onthedot.store.driver import Row
from onthedot.store.shapes import Shape

__all__ = ["NewOperation", "OperationStep", "StartedOperation", "no_operation", "operation_view", "started_operation"]


OPEN = "open"  # the name of everybody, on a server without keys


class NewOperation(Shape, frozen=True, kw_only=True):
    tenant: int
    verb: BulkVerb
    filter: str | None
    ids: str | None
    params: str
    rate: int | None
    bound: int
    total: int
    total_exact: bool
    actor: str | None
    next_at: int
    created_at: int
    updated_at: int


class OperationStep(Shape, frozen=True, kw_only=True):
    """What a portion makes of it."""

    state: BulkState
    position: str | None
    total: int
    total_exact: bool
    done: int
    failed: int
    skipped: int
    errors: str
    watched: str
    waiting_for: int
    failed_again: int
    node: str | None
    reason: str | None
    next_at: int
    updated_at: int
    finished_at: int | None


class StartedOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One that is under way, as who works on it reads it."""

    id: int
    tenant: int
    verb: BulkVerb
    filter: BulkFilter | None
    ids: list[int | str] | None
    params: dict[str, Any]
    rate: int | None
    bound: int
    position: list[int | str] | None
    errors: list[BulkError]
    watched: list[str]
    actor: str | None

    @property
    def by_slot(self) -> bool:
        """It counts the slots of one job."""
        return self.verb == "backfill" and bool(self.params.get("by_slot"))

    @property
    def by(self) -> ChangeActor:
        """Who changes what it changes."""
        if self.actor is None:
            return ITSELF
        return ChangeActor(kind="open" if self.actor == OPEN else "key", name=self.actor)


def started_operation(row: Row) -> StartedOperation:
    return StartedOperation(
        id=row["id"],
        tenant=row["tenant"],
        verb=row["verb"],
        filter=None if row["filter"] is None else msgspec.json.decode(row["filter"], type=BulkFilter),
        ids=None if row["ids"] is None else msgspec.json.decode(row["ids"], type=list[int | str]),
        params=msgspec.json.decode(row["params"]),
        rate=row["rate"],
        bound=row["bound"],
        position=None if row["position"] is None else msgspec.json.decode(row["position"], type=list[int | str]),
        errors=msgspec.json.decode(row["errors"], type=list[BulkError]),
        watched=msgspec.json.decode(row["watched"], type=list[str]),
        actor=row["actor"],
    )


def operation_view(row: Row) -> BulkOperation:
    params = msgspec.json.decode(row["params"])
    return BulkOperation(
        id=row["id"],
        verb=row["verb"],
        state=row["state"],
        total=row["total"],
        total_exact=bool(row["total_exact"]),
        done=row["done"],
        failed=row["failed"],
        skipped=row["skipped"],
        errors=msgspec.json.decode(row["errors"], type=list[BulkError]),
        filter=None if row["filter"] is None else msgspec.json.decode(row["filter"]),
        ids=(1 if params.get("by_slot") else row["total"]) if row["by_ids"] else None,
        params=params,
        rate=row["rate"],
        actor=row["actor"],
        node=row["node"],
        reason=row["reason"],
        failed_again=row["failed_again"],
        waiting_for=row["waiting_for"],
        created_at=format_instant(row["created_at"]),
        updated_at=format_instant(row["updated_at"]),
        finished_at=None if row["finished_at"] is None else format_instant(row["finished_at"]),
    )


def no_operation(operation_id: int) -> NotFound:
    return NotFound(f"operation {operation_id} not found")
