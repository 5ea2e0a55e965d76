"""One send, as a target sees it: everything about the run that the outside may know, and nothing of the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, runtime_checkable

import msgspec

from onthedot.clock import SystemClock
from onthedot.model.instant import format_instant
from onthedot.model.run import Outcome
from onthedot.model.targets import Target

__all__ = ["Booking", "Call", "HandOver", "Kind", "Lacking", "NotBegun", "Timekeeper", "run_environment"]


class NotBegun(Exception):
    """The call was withdrawn, or found nobody to do it, before anything of it was done: it may be given back."""


class Lacking(NotBegun):
    """This machine has run out of what it takes to begin (`scarcity`); the message says of what."""


def _nowhere(text: str) -> None:
    """Output that nobody asked for."""


_wall = SystemClock().now_ms


def _always() -> bool:
    return True


class Call(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is to be done once. `attempt` is the run's token: it rises with every claim."""

    run_id: str
    job_id: int
    slot: int
    attempt: int
    target: Target
    key: str | None = None
    tenant: int = 1
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    timeout: float | None = None  # seconds; the engine enforces it by cancelling, a target may only tell others of it
    log: Callable[[str], None] = _nowhere  # text as it comes, in any portions
    begun: Callable[[float], None] | None = None
    """A target that lets calls wait tells when it begins, on the monotonic clock, if that is later than it was asked.
    Who listens also takes NotBegun instead of an Outcome."""
    may_begin: Callable[[], bool] = _always
    """Asked by a target that had to wait, right before anything of the call leaves: meanwhile the process may have been
    frozen, and the run be another node's. False: the call was not begun."""
    lacks: Callable[[str], None] = _nowhere
    """Told what this machine has run out of, before the call ends as not begun: others would fare no better now."""
    now_ms: Callable[[], int] = _wall
    """What time it is, for whatever is told to the outside. The engine's is the database's: this machine's clock may be
    wrong, and a receiver refuses a signature that is minutes old."""


class Kind(Protocol):
    """One kind of target. Entered once per node, on the loop that sends."""

    @property
    def offers(self) -> list[str]:
        """What a run may require of this node, as the `capability()` of a target writes it."""
        ...

    def check(self, target: Any, tenant: int) -> None:
        """Raise Invalid, with paths that begin with "target.", for what can never work here for this tenant."""
        ...

    async def send(self, call: Call) -> Outcome:
        """Do it. Cancelling this kills what it started."""
        ...

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *exc: object) -> None: ...


HandOver = Callable[[Call, Callable[[Outcome | None], None]], Callable[[], bool | None]]
"""The other door of a kind that carries calls out elsewhere, and needs no task here to wait for each: takes a call and
whom to tell how it ended (None: it was not begun), never before it returns; gives back how to withdraw it, after which
nobody is told. A withdrawal that says False came before the call began."""


class Booking(Protocol):
    """A call that was handed over before its instant. All of this is for the loop that it came from."""

    @property
    def began(self) -> float | None:
        """When, on the monotonic clock; None: it has not begun."""
        ...

    @property
    def ended(self) -> float | None:
        """When: it may have taken a while to be told."""
        ...

    def take_back(self) -> bool:
        """Whether it had not begun. Then it never will, and nobody is told; else nothing is changed."""
        ...

    def withdraw(self) -> bool | None:
        """As one that was handed over; but if it has ended, this is told now, before we return."""
        ...


@runtime_checkable
class Timekeeper(Protocol):
    """A kind that begins calls at their instant by itself. It tells `begun` of a call that has not ended in a moment,
    and before what the call logs."""

    def keeps_time_for(self, target: Any) -> bool:
        """Whether calls of this target may be booked."""
        ...

    def book(self, call: Call, at: float, ended: Callable[[Outcome | None], None]) -> Booking | None:
        """Begin it at this monotonic instant, never before. None: this one can't be booked."""
        ...


def run_environment(call: Call) -> dict[str, str]:
    """The variables by which a command or a function knows which run it is."""
    environment = {
        "ONTHEDOT_RUN_ID": call.run_id,
        "ONTHEDOT_JOB_ID": str(call.job_id),
        "ONTHEDOT_SCHEDULED_FOR": format_instant(call.slot),
        "ONTHEDOT_ATTEMPT": str(call.attempt),
        "ONTHEDOT_PARAMS": msgspec.json.encode(call.params).decode(),
    }
    if call.key is not None:
        environment["ONTHEDOT_JOB_KEY"] = call.key
    return environment
