"""What the store says when all is over: jobs, live runs, history. Plain rows, from whichever database."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["Attempt", "Entry", "Job", "Ledger", "Live", "Stats"]


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `job_stats`."""

    runs: int
    failures: int
    timed: int
    duration_ms: int
    last_status: str | None
    last_run_id: str | None


class Job(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    spec: dict[str, Any]
    state: str
    version: int | None = None
    stats: Stats | None = None
    view: dict[str, Any] | None = None  # as the API shows it


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    attempt: int
    node: str
    started_at: int | None = None
    finished_at: int
    outcome: str
    error: str | None = None
    try_number: int | None = None
    completion: str | None = None


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
    tries: int = 0
    attempts: list[Attempt] = []
    parent: str | None = None
    open: str | None = None
    open_until: int | None = None
    view: dict[str, Any] | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `history`. What has a default is not read by everybody. clock: how often the database's clock had been
    set when it was written."""

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
    node: str | None = None
    started_at: int | None = None
    lateness_ms: int | None = None
    duration_ms: int | None = None
    outcome: dict[str, Any] | None = None
    error: str | None = None
    attempts: list[Attempt] = []
    parent: str | None = None
    clock: int | None = None
    view: dict[str, Any] | None = None


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """`now`: the database's clock at the end. `at`: the same moment in the history's time. whole: every column is read,
    so that each row can be compared with what it must say. dead: the open dead letters."""

    at: int
    now: int
    jobs: list[Job]
    live: list[Live]
    entries: list[Entry]
    whole: bool = False
    slots: dict[str, int] = {}  # how many of each kind a node may run at once
    nodes: int = 0
    lookahead: int = 2000
    hosts: bool = False  # webhooks go to several, each a destination of its own
    dead: list[str] = []
