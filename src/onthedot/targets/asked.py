"""One call on its way through the worker processes, from the node's side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from onthedot.targets.answers import Answer

if TYPE_CHECKING:
    from onthedot.targets.worker import Worker

__all__ = ["Asked", "WorkerDied"]

_MOMENT = 0.001  # what is not worth telling: times are kept in milliseconds


class WorkerDied(Exception):
    """The process ended in the middle of a call; the message says how."""


class Asked:
    """`ended` hears how it went, once, and never before `submit` has returned. Where `begun` is given, it is told when
    the call begins later than it was asked for, and the call may be given up (NotBegun) as long as it has not begun."""

    __slots__ = ("_told", "begun", "done", "ended", "expected", "function", "log", "message", "since", "worker")

    def __init__(
        self,
        function: str,
        message: bytes,
        log: Callable[[str], None],
        ended: Callable[[Answer | Exception], None],
        begun: Callable[[float], None] | None = None,
    ) -> None:
        self.function, self.message, self.log, self.ended, self.begun = function, message, log, ended, begun
        self.since = asyncio.get_running_loop().time()
        self.done = False  # answered, failed, or nobody wants to know any more
        self.worker: Worker | None = None
        self.expected = 0.0  # seconds
        self._told = False

    def has_begun(self, at: float) -> None:
        if not self._told and at - self.since > _MOMENT and self.begun is not None:
            self._told = True
            self.begun(at)
