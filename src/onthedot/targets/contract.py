"""The seam between the engine and the kinds of targets: all that either knows of the other.

A call is started (`Kind.start`), and its kind tells once how it ended (`done`). In between, the engine may ask it to
stop (`Handle.stop`); the kind asks whether it may begin (`Call.may_begin`) and says when it did (`Call.begun`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import msgspec

from onthedot.clock import SystemClock
from onthedot.errors import Invalid
from onthedot.model.instant import format_instant
from onthedot.model.run import Outcome
from onthedot.model.targets import Target

if TYPE_CHECKING:
    from onthedot.settings import Settings
    from onthedot.targets.setup import FileGrants
    from onthedot.targets.webhook.own_ports import OwnPort

__all__ = [
    "NOT_BEGUN",
    "Call",
    "Cause",
    "Done",
    "Ended",
    "Handle",
    "Kind",
    "Profile",
    "Stop",
    "TargetDiagnosis",
    "failed_try",
    "run_environment",
]

Cause = Literal["cancelled", "timeout", "interrupted", "gone", "recalled"]
"""Why a call is to stop: a user or a newer run wants it, it takes too long, its node stops or may soon lose it, it is
another node's, or its job was changed. `recalled` only withdraws what has not begun; what has begun goes on."""


class Stop(Enum):
    """What a call answers that is asked to stop."""

    NOT_BEGUN = "not begun"
    """Nothing of it has left this process, and nothing will; `done` is not called."""
    STOPPING = "stopping"
    """It was asked to end, and tells when it has. After `recalled`: it has begun, and goes on."""
    ENDED = "ended"
    """It is over, and `done` was called, at the latest just now."""


class Ended(msgspec.Struct, frozen=True, gc=False):
    """How a call ended. No outcome: it was stopped, and the engine knows why; or, if it never began, it may be given to
    somebody else. Both instants are on the monotonic clock; it ended now if nothing else is said."""

    outcome: Outcome | None
    began: float | None
    ended: float | None = None


NOT_BEGUN = Ended(None, None)

Done = Callable[[Ended], None]


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine has to know of a kind before it starts anything of it."""

    capacity: int | None = None  # how many calls run at once; None: as many as CONCURRENCY says
    at_most: int | None = None  # whatever CONCURRENCY says: this process can have no more open
    in_process: bool = False  # calls run in this very process, and end with it
    survives_node: bool = False
    """What was started goes on without the node. Its kind kills it on `cancelled` and `timeout` only; on `interrupted`
    and `gone` it lets go of it, because another node adopts it, and tells `done` without an outcome. It says itself by
    `begun` when the work began, which may be before the call. What is over is removed once it is `recorded`."""
    leaves_behind: bool = False
    """What a node started that was killed may go on, and is of no use to anybody: `inventory` lists it, and it is
    removed once the try is over."""
    has_destinations: bool = False
    """Calls go to parties that may be slow or away (`Kind.destination`): each has a part of the slots and a breaker."""
    shares_workers: bool = False
    """Each call has a worker for as long as it takes: no job and no tenant has all of them (`Kind.is_brief`)."""
    stop_within: float = 5.0
    """Seconds after which a call that was asked to stop is not waited for any more."""


def _ignore(told: Any) -> None:
    """Nobody wants to know."""


def _always() -> bool:
    return True


_clock = SystemClock()


class Call(msgspec.Struct, kw_only=True, gc=False):
    """What is to be done once. `attempt` is the run's token: it rises with every claim. `try_number` does not rise for
    attempts that were interrupted, lost or not begun: what one of them has started, the next may find again, by the
    name `<run id>-<try>`."""

    run_id: str
    job_id: int
    slot: int
    attempt: int
    target: Target
    try_number: int = 1
    adopted: bool = False
    """Another node has begun this very try: what it started goes on, and is to be found, followed and, if it comes to
    that, killed. It may also have died before it started anything."""
    place: str | None = None
    """Of what was adopted: what `Kind.adopted_by` said when it began. Only who is there can say that it is gone."""
    may_create: bool = True
    """Whether what is not found may be started. Not where it was adopted and is to be done once at most, or its job was
    deleted or paused meanwhile: then nobody knows whether it was done (`unknown`)."""
    key: str | None = None
    tenant: int = 1
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    callback: str | None = None
    """Where whoever is called tells later how it ended; None: its answer is the end. An `ok` outcome means accepted."""
    timeout: float | None = None  # seconds; the engine enforces it, a kind may only tell others of it
    log: Callable[[str], None] = _ignore  # text as it comes, in any portions
    may_begin: Callable[[], bool] = _always
    """Asked right before anything of the call leaves, from any thread: the process may have been frozen, and the run be
    another node's, or be expired. False: it must not begin."""
    begun: Callable[[float], None] = _ignore
    """Told when the call begins, on the monotonic clock: its time-out, its start and its log count from then. What is
    told with the end is soon enough for a call that ends in a moment."""
    lacks: Callable[[str], None] = _ignore
    """Told what this machine has run out of, before the call ends as not begun: others would fare no better now."""
    offset_us: int | None = None  # of the monotonic clock over the database's; None: over this machine's (`time_at`)
    stopped: Cause | None = None  # set by the kind when it is asked to stop

    def time_at(self, monotonic: float) -> int:
        """What time it is at this instant of the monotonic clock, in ms, for whatever is told to the outside. The
        database's time: this machine's clock may be wrong, and a receiver refuses a signature that is minutes old."""
        offset = self.offset_us
        if offset is None:
            offset = int(_clock.monotonic() * 1e6) - _clock.now_us()
        return (int(monotonic * 1e6) - offset) // 1000


class TargetDiagnosis(msgspec.Struct, frozen=True):
    """What `onthedot doctor` says of something that a kind needs. No advice: it is as it should be."""

    subject: str
    found: str
    advice: str | None = None
    is_error: bool = True  # with advice; False: nobody may ever need it


class Handle(Protocol):
    """One call that was started. For the loop that started it."""

    def stop(self, cause: Cause) -> Stop:
        """Asks it to stop, and does not wait. May be asked again, which is to be taken as urgent; `gone` takes the
        place of whatever cause there was."""
        ...

    def recorded(self) -> None:
        """Its result is committed: what was started outside may be removed. Told only where that `survives_node`."""
        ...


class Kind(ABC):
    """One kind of target. Entered once per node, on the loop that starts calls.

    What is abstract every kind has to say; the rest is there for those that need it."""

    spec: type[Any]
    """What jobs say of it: the struct of its targets."""
    profile: Profile = Profile()

    @property
    def tag(self) -> str:
        """The `type` of its targets."""
        return str(self.spec.__struct_config__.tag)

    def capabilities(self) -> list[str]:
        """What a run may require of this node, as the `capability()` of a target writes it: the kind's name alone, or
        "name:what" for each thing that it offers."""
        return [self.tag]

    @abstractmethod
    def start(self, call: Call, at: float, done: Done) -> Handle:
        """Begin it at this monotonic instant, never before: that is now, however late the run is, and in the future
        only if `keeps_time` said so.

        `done` is called exactly once, on this loop, and never before this has returned; not at all if `stop` answered
        NOT_BEGUN. What raises here is a failed try."""

    def keeps_time(self, target: Any) -> bool:
        """Whether calls of this target may be started before their instant, because the kind itself waits for it."""
        return False

    def ahead(self) -> int:
        """How many calls more than its capacity it takes at this moment."""
        return 0

    def destination(self, target: Any) -> str | None:
        """Who is called: one that hangs or fails must not keep calls of others. The same text for the same party, also
        on other nodes; None: nobody in particular. Asked for each call. For kinds that have destinations."""
        return None

    def is_brief(self, target: Any) -> bool:
        """Whether calls of this target took so little time of late that nobody is late who waits for their workers. For
        kinds that share workers; asked for each call."""
        return False

    def answered(self, outcome: Outcome) -> bool | None:
        """What an outcome says of the destination: True, it is there; False, it is away, overloaded or out of order;
        None, nothing."""
        if outcome.kind == "ok":
            return True
        return False if outcome.kind == "timeout" or (outcome.kind == "error" and outcome.retryable) else None

    def adopted_by(self, target: Any) -> str:
        """What a node must offer to go on with what was started here, its place in it. For kinds that survive."""
        return str(target.capability())

    async def inventory(self) -> Sequence[str]:
        """The names (`<run id>-<try>`) of what there is in the places that this node reaches, and may be removed if
        its try is over. For kinds that survive, or leave something behind."""
        return ()

    async def end_overdue(self) -> Sequence[str]:
        """End what runs on past the deadline that was written on it when it was started, whoever did that; the names.
        For kinds whose place knows no deadlines. Only what nobody takes care of is that late."""
        return ()

    async def remove(self, name: str) -> bool | None:  # noqa: B027 - only what survives can be left behind
        """Its try is over: end what still runs of it, and remove it. False: it is left for a while."""

    def check(self, target: Any, tenant: int = 1) -> None:  # noqa: B027 - nothing is wrong unless a kind says so
        """Raise Invalid, with paths that begin with "target.", for what can never work here for this tenant."""

    def refusal(self, target: Any, tenant: int = 1) -> str | None:
        """What `check` says against it; None: nothing. For `problem`, and for `send`: what the operator allows may have
        changed since the job was made."""
        try:
            self.check(target, tenant)
        except Invalid as invalid:
            return str(invalid)
        return None

    def problem(self, target: Any, tenant: int = 1) -> str | None:
        """Why runs of it would fail here, as far as it can be seen without running it; None: it may well work. Reads
        files: not for the loop of the engine."""
        return None

    async def diagnose(self) -> Sequence[TargetDiagnosis]:
        """Try what it needs on this node, such as servers that it connects to, within seconds. Asked of a kind that was
        not entered."""
        return ()

    def register(self, settings: Settings, granted: Mapping[int, FileGrants]) -> None:  # noqa: B027 - not all have members
        """Replace what may be called, at the start and whenever the jobs file is read again. `granted`: what may be
        called besides, by tenant."""

    async def reload(self) -> None:  # noqa: B027 - not every kind keeps something warm
        """Let go of what is idle, so that the next calls find what is new."""

    def trust(self, *, is_open: bool, own_ports: frozenset[OwnPort]) -> None:  # noqa: B027 - not every kind connects
        """Whether the installation is open, and which ports are its own."""

    def belong_to(self, installation: str) -> None:  # noqa: B027 - only what survives must be known by it
        """The id of the installation, the same on all its nodes: told before anything is started. What others have
        started in the same place is not ours to adopt or to remove."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None


def failed_try(error: BaseException) -> Outcome:
    """A kind that fails in a way nobody foresaw is a failed try, never the end of the node."""
    try:
        words = str(error)
    except Exception as failing:
        words = f"its str() failed: {type(failing).__name__}"
    return Outcome(kind="error", retryable=True, error=f"{type(error).__name__}: {words}")


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
