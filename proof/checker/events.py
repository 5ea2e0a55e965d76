"""What may stand in a history.

`at` is the true time in ms since the history began, `db` the database's clock in ms since the epoch. Nothing but the
receiver, the users, the faults and (where it can be seen) what the database committed is written down: a node's own
word proves nothing.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = [
    "Acted",
    "Begun",
    "CalledBack",
    "Changed",
    "Claimed",
    "Completed",
    "Crashed",
    "Event",
    "Fault",
    "Froze",
    "History",
    "Killed",
    "Lost",
    "Made",
    "Received",
    "Recorded",
    "Refused",
    "Stepped",
    "Waited",
    "WaitingRow",
    "Wrote",
]


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    at: int


class Made(_Event, frozen=True, kw_only=True, tag="made"):
    """A user created a job and was told so. `mark` names the request: one request, one job, however often it was sent.

    created_at: the database's time in the answer. until: when the answer came. sent: how often it was asked.
    """

    until: int
    mark: int
    job: int
    spec: dict[str, Any]
    created_at: int
    sent: int = 1


class Refused(_Event, frozen=True, kw_only=True, tag="refused"):
    """A user was told that a job can't be made, and why. With the Idempotency-Key of `mark`, that is for ever."""

    until: int
    mark: int
    why: str = ""


class Changed(_Event, frozen=True, kw_only=True, tag="changed"):
    """A user changed a job and was told so. changed_at: the database's time in the answer; None when there is none
    (delete), or when nothing changed."""

    until: int
    job: int
    verb: Literal["edit", "pause", "resume", "delete", "undelete"]
    version: int | None = None
    state: str | None = None  # of the job, in the answer
    changed_at: int | None = None
    spec: dict[str, Any] | None = None  # of an edit
    sent: int = 1


class Acted(_Event, frozen=True, kw_only=True, tag="acted"):
    """A user asked for runs by hand (their ids are in the answer), to cancel one, or to leave out a slot."""

    until: int
    job: int
    verb: Literal["run", "backfill", "redrive", "cancel", "skip", "unskip"]
    runs: list[str]
    sent: int = 1


class Received(_Event, frozen=True, kw_only=True, tag="received"):
    """The receiver got a call, wrote it down, then answered.

    answer: ok, error (retryable), refused (for good), cut (the connection broke without an answer).
    node: who sent it, if that can be known. took: ms until the answer. asked: what it was called with (target, params,
    slot). says: the error in its answer. retry_after: ms after the answer, if it asked for that. retry_at: the
    date, in ms since the epoch, if it asked for that by one. parks: it wants no more calls of this job. stamp: the
    time, in ms since the epoch, that the call itself says it is.
    """

    db: int
    run: str
    job: int
    token: int
    answer: Literal["ok", "error", "refused", "cut"]
    took: int
    node: str | None = None
    asked: dict[str, Any] | None = None
    says: str | None = None
    retry_after: int | None = None
    retry_at: int | None = None
    parks: bool = False
    stamp: int | None = None
    left: int | None = None  # ms after which the caller hung up without an answer, where the receiver notes that
    of: int | None = None  # the try, if it will be told by a callback how it ended, or goes on without its node


class CalledBack(_Event, frozen=True, kw_only=True, tag="called_back"):
    """The receiver of a try told how it ended, and got an answer: an HTTP status, None if it never got one. `told`:
    done, failed (retryable), final (not), progress. false: with a token that is none. sent: how often it asked."""

    until: int
    run: str
    of: int
    told: Literal["done", "failed", "final", "progress"]
    answer: int | None
    mark: int = 0
    false: bool = False
    sent: int = 1


class Completed(_Event, frozen=True, kw_only=True, tag="completed"):
    """The database took what a callback told, or refused it. standing: as it was answered. wrote: it ended its try.
    mark: of the result that came with it."""

    db: int
    run: str
    of: int
    told: Literal["done", "failed", "final"]
    standing: Literal["current", "earlier", "repeat", "over"]
    wrote: bool
    mark: int = 0


class Killed(_Event, frozen=True, kw_only=True, tag="killed"):
    """Work outside was ended before its time. why: cancelled, timeout, removed."""

    run: str
    of: int
    why: str


class Fault(_Event, frozen=True, kw_only=True, tag="fault"):
    """Something went wrong from `at` to `until`. node None: for all of them."""

    until: int
    what: str
    node: str | None = None


class Stepped(_Event, frozen=True, kw_only=True, tag="stepped"):
    """Somebody set the database's clock. highest: the latest time it had shown until then. db: what it shows now."""

    by_ms: int
    highest: int
    db: int | None = None


class Claimed(_Event, frozen=True, kw_only=True, tag="claimed"):
    """The database gave a run to a node, whether the node learned of it or not."""

    db: int
    node: str
    run: str
    token: int


class Wrote(_Event, frozen=True, kw_only=True, tag="wrote"):
    """The database committed a user's verb, whether the user learned of it or not.

    wish: what was asked for: the whole spec of a new job, the parts of it that an edit replaces. runs: those that were
    asked for, to be cancelled, or of the slot to be left out. if_match: the version that the user had seen. given_up:
    ms since the client hung up.
    by: the run whose end caused it, if no user did. number: the version as the database has it; `wish` is all of it.
    """

    db: int
    verb: Literal[
        "create",
        "edit",
        "pause",
        "resume",
        "delete",
        "undelete",
        "run",
        "backfill",
        "redrive",
        "cancel",
        "skip",
        "unskip",
    ]
    job: int
    wish: dict[str, Any] | None = None
    runs: list[str] = []
    if_match: int | None = None
    given_up: int | None = None
    by: str | None = None
    number: int | None = None
    view: dict[str, Any] | None = None  # the answer


class Froze(_Event, frozen=True, kw_only=True, tag="froze"):
    """The database committed that everything is paused (on), or goes on. given_up: ms since the client hung up."""

    db: int
    on: bool
    given_up: int | None = None


class Begun(_Event, frozen=True, kw_only=True, tag="begun"):
    """The database was told that this attempt is sent now, before it is."""

    node: str
    run: str
    token: int
    db: int | None = None


class WaitingRow(msgspec.Struct, frozen=True, kw_only=True):
    token: int
    due: int
    tries: int


class Waited(_Event, frozen=True, kw_only=True, tag="waited"):
    """The database took a run back from a node, to wait for its destination. `token`: of the claim. before, now: what
    its row said when it was claimed, and says now."""

    db: int
    node: str
    run: str
    token: int
    host: str
    before: WaitingRow
    now: WaitingRow


class Recorded(_Event, frozen=True, kw_only=True, tag="recorded"):
    """The database took a result from a node. outcome "accepted": the receiver will tell by a callback how it ended."""

    node: str
    run: str
    token: int
    outcome: str | None = None
    db: int | None = None


class Lost(_Event, frozen=True, kw_only=True, tag="lost"):
    """A node was declared lost. silent: ms since the database last took a beat of it."""

    node: str
    silent: int


class Crashed(_Event, frozen=True, kw_only=True, tag="crashed"):
    """A node stopped by itself, or something in it failed unseen."""

    node: str
    error: str


Event = (
    Made
    | Refused
    | Changed
    | Acted
    | Wrote
    | Froze
    | Received
    | CalledBack
    | Completed
    | Killed
    | Fault
    | Stepped
    | Claimed
    | Begun
    | Waited
    | Recorded
    | Lost
    | Crashed
)
History = list[Event]
