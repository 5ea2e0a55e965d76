"""One call on its way through the worker processes, from the node's side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from onthedot.model.run import Outcome
from onthedot.targets.contract import NOT_BEGUN, Call, Cause, Done, Ended, Stop
from onthedot.targets.exhaustion import Lacking
from onthedot.targets.function.protocol import CallResult, outcome_of

if TYPE_CHECKING:
    from onthedot.targets.function.pool import WorkerPool
    from onthedot.targets.function.worker import WorkerProcess

__all__ = ["PendingCall", "Refused", "WorkerDied"]


class Refused(Exception):
    """It may not be called here; the message says why."""


class WorkerDied(Exception):
    """The process ended in the middle of a call; the message says how."""


class PendingCall(msgspec.Struct, gc=False, eq=False):
    """Waits in the pool, then in a worker's socket, then runs.

    Out of the garbage collector's sight, as the Monitor is that waits for it and lets go of it."""

    pool: WorkerPool
    call: Call
    function: str
    message: bytes
    at: float  # when it was asked for
    since: float  # the same on the loop's clock
    _done: Done | None
    answered: bool = False  # `result` is how; or nobody wants to know any more
    result: CallResult | Exception | None = None  # None: it was not begun, or it was stopped
    worker: WorkerProcess | None = None
    expected: float = 0.0  # seconds
    began: float | None = None

    def stop(self, cause: Cause) -> Stop:
        return self.pool.stop(self, cause)

    def recorded(self) -> None:
        """Nothing is left of it."""

    def has_begun(self, at: float) -> None:
        if self.began is None:
            self.began = at
            self.call.begun(at)

    def tell(self) -> bool:
        """How it ended, once, if that is known; whether it is."""
        if not self.answered:
            return False
        done, self._done = self._done, None
        if done is not None:
            self._tell(done)
        return True

    def _tell(self, done: Done) -> None:
        match self.result:
            case CallResult() as result:
                done(Ended(outcome_of(result), self.began, result.ended))
            case Lacking() as lacking:
                self.call.lacks(str(lacking))
                done(NOT_BEGUN)
            case Refused() as refused:
                done(Ended(Outcome(kind="refused", error=str(refused)), self.at))
            case Exception() as error:
                done(Ended(Outcome(kind="error", retryable=True, error=str(error)), self.began or self.at))
            case None:
                done(Ended(None, self.began))

    def withdraw(self) -> None:
        """Nobody is told any more."""
        self.answered, self._done = True, None
