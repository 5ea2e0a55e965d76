"""Which run a function is called for, asked from inside it: `onthedot.current_run().id`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol

import msgspec

from onthedot.model.instant import format_instant

__all__ = ["CALLED_FOR", "CurrentRun", "current_run"]


class CurrentRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run that the calling function belongs to. `id` is the same on every attempt: use it as an idempotency key."""

    id: str
    job_id: int
    job_key: str | None
    scheduled_for: str  # RFC 3339 in UTC; `datetime.fromisoformat` reads it
    attempt: int
    params: dict[str, Any]


class CalledFor(Protocol):
    """What is known of a call in this process."""

    @property
    def run_id(self) -> str: ...
    @property
    def job_id(self) -> int: ...
    @property
    def key(self) -> str | None: ...
    @property
    def slot(self) -> int: ...
    @property
    def attempt(self) -> int: ...
    @property
    def params(self) -> dict[str, Any]: ...


class Inside(Protocol):
    """What carries a call out in this process."""

    @property
    def call(self) -> CalledFor: ...


CALLED_FOR: ContextVar[Inside | None] = ContextVar("onthedot_run", default=None)


def current_run() -> CurrentRun:
    """The run that this function is called for. Works in functions of an embedded `Scheduler`, sync and async, in
    functions of a server, which run in worker processes, and in commands. RuntimeError outside of a run."""
    inside = CALLED_FOR.get()
    if inside is not None:
        call = inside.call
        return CurrentRun(
            id=call.run_id,
            job_id=call.job_id,
            job_key=call.key,
            scheduled_for=format_instant(call.slot),
            attempt=call.attempt,
            params=dict(call.params),
        )
    if "ONTHEDOT_RUN_ID" in os.environ:
        return _from_environment(os.environ)
    raise RuntimeError("not inside a run: current_run() works in a function that a job calls")


def _from_environment(environ: Mapping[str, str]) -> CurrentRun:
    """A worker process and a command are told by their environment."""
    return CurrentRun(
        id=environ["ONTHEDOT_RUN_ID"],
        job_id=int(environ["ONTHEDOT_JOB_ID"]),
        job_key=environ.get("ONTHEDOT_JOB_KEY"),
        scheduled_for=environ["ONTHEDOT_SCHEDULED_FOR"],
        attempt=int(environ["ONTHEDOT_ATTEMPT"]),
        params=msgspec.json.decode(environ.get("ONTHEDOT_PARAMS") or "{}", type=dict[str, Any]),
    )
