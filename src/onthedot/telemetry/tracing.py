"""What is told to whoever traces runs. Nobody does unless OpenTelemetry is configured, and then nothing is built."""

from __future__ import annotations

from typing import Protocol

import msgspec

__all__ = ["AttemptTrace", "CreatedTrace", "Tracer"]


class CreatedTrace(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job was created; `run_id` is that of its first run, in whose trace it belongs."""

    run_id: str
    job_id: int
    key: str | None
    tenant: int
    at_ns: int


class AttemptTrace(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An attempt has ended. Times in ms on the database's clock."""

    run_id: str
    job_id: int
    key: str | None
    tenant: int
    target: str  # its type
    trigger: str  # what made the run: scheduled, manual …
    attempt: int
    is_first: bool
    due_at: int
    claimed_at: int  # for the first time
    started_at: int | None
    finished_at: int
    outcome: str
    error: str | None
    status: str | None  # of the run, if it is over
    status_code: int | None  # of the response
    log: str | None


class Tracer(Protocol):
    """Called on the loop: takes what it is told and returns at once."""

    def job_created(self, created: CreatedTrace) -> None: ...

    def attempt_ended(self, attempt: AttemptTrace) -> None: ...
