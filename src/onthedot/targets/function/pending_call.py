"""One call on its way through the worker processes, from the node's side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from onthedot.targets.function.protocol import CallResult

if TYPE_CHECKING:
    from onthedot.targets.function.worker import WorkerProcess

__all__ = ["PendingCall", "WorkerDied"]

_MOMENT = 0.001  # what is not worth telling: times are kept in milliseconds


class WorkerDied(Exception):
    """The process ended in the middle of a call; the message says how."""


class PendingCall(msgspec.Struct, gc=False, eq=False):
    """`ended` hears how it went, once, and never before `submit` has returned. Where `begun` is given, it is told when
    the call begins later than it was asked for, and the call may be given up (NotBegun) as long as it has not begun.

    Out of the garbage collector's sight, as the Monitor is that waits for it and lets go of it."""

    function: str
    message: bytes
    log: Callable[[str], None]
    ended: Callable[[CallResult | Exception], None]
    begun: Callable[[float], None] | None
    since: float  # on the loop's clock
    may_begin: Callable[[], bool]  # asked if it had to wait
    done: bool = False  # answered, failed, or nobody wants to know any more
    worker: WorkerProcess | None = None
    expected: float = 0.0  # seconds
    _told: bool = False

    def has_begun(self, at: float) -> None:
        if not self._told and at - self.since > _MOMENT and self.begun is not None:
            self._told = True
            self.begun(at)
