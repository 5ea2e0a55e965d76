"""What the store says when all is over: jobs, live runs, history. Plain rows, from whichever database."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["Entry", "Job", "Ledger", "Live"]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    spec: dict[str, Any]
    state: str


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `runs`."""

    id: str
    job: int
    slot: int
    kind: str
    cursor: bool
    state: str
    due_at: int
    ready_at: int
    parked: str | None
    token: int
    node: str | None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `history`."""

    id: str
    job: int
    slot: int
    until: int | None
    slots: int | None
    kind: str
    due_at: int
    status: str
    reason: str | None
    token: int
    tries: int
    losses: int
    finished_at: int


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """`now`: the database's clock at the end. `at`: the same moment in the history's time."""

    at: int
    now: int
    jobs: list[Job]
    live: list[Live]
    entries: list[Entry]
