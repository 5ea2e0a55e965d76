"""What workflow engines have in common, as far as a run needs it.

An execution is named `<run id>-<try>`, and an engine takes each name once. What it can't keep beside the name is a mark
by which an installation knows its own: each engine has a place for it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, Protocol

import msgspec

__all__ = [
    "AlreadyThere",
    "EngineDown",
    "EngineNotReached",
    "Execution",
    "NewExecution",
    "StartRefused",
    "WorkflowEngine",
]


class EngineDown(Exception):
    """It was not reached, or is not able to answer now: nobody knows whether it did what it was asked."""


class EngineNotReached(EngineDown):
    """There was no connection over which it could have been asked."""


class StartRefused(Exception):
    """It will not do that, and says why."""

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class AlreadyThere(Exception):
    """There is an execution of this name."""


class NewExecution(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be started. `mark`: says whose it is, and of which run and try. 32 hexadecimal digits. `labels`: the
    same for people, where an engine has room for it."""

    workflow: str
    name: str
    input: dict[str, Any]
    mark: str
    labels: dict[str, str]
    seconds: float | None = None  # after which it should end by itself, where an engine can see to that


class Execution(msgspec.Struct, frozen=True, kw_only=True):
    """One execution as the engine shows it."""

    state: Literal["going", "ok", "failed"]
    mark: str | None = None  # None: it shows none
    input: Any = None
    started_at: int | None = None  # ms, on the engine's clock
    ended_at: int | None = None
    result: Any = None
    error: str | None = None
    detail: dict[str, Any] = msgspec.field(default_factory=dict)

    def is_of(self, new: NewExecution) -> bool:
        """Without a mark, the name and the input have to do."""
        return self.mark == new.mark if self.mark is not None else self.input == new.input


class WorkflowEngine(Protocol):
    """One engine. All but `problem` may raise EngineDown, and StartRefused for what is not allowed."""

    title: str
    address: str
    place: str  # where executions are that are started now
    former_place: str | None  # under which others of them may have been recorded

    def problem(self, workflow: str) -> tuple[str, str] | None:
        """What is wrong with the name of a workflow, and what is accepted."""
        ...

    async def start(self, new: NewExecution) -> None:
        """Raises AlreadyThere, too."""
        ...

    async def look(self, workflow: str, name: str) -> Execution | None:
        """None: there is none of this name, and who says so is the engine that would have it."""
        ...

    async def going(self, workflow: str) -> set[str]:
        """The names of those that have not ended, perhaps not of all."""
        ...

    async def lists(self, used: Collection[str]) -> Collection[str]:
        """What has to be listed to find what was left behind: all of an engine where it can be asked so, else the
        workflows that this node has used."""
        ...

    async def left(self, listed: str) -> list[tuple[str, str]]:
        """Of one list: workflow and name of those that have not ended and may be ours, perhaps not of all."""
        ...

    async def stop(self, workflow: str, name: str) -> None:
        """Also one that has ended, or is not there."""
        ...

    async def hello(self) -> str:
        """Who answers, for `doctor`. Needs a login that is accepted."""
        ...

    async def close(self) -> None: ...
