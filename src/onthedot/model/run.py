"""Runs: the firing of one slot, from pending to its entry in the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from onthedot.model.job import JobSpec
from onthedot.model.run_request import RunRequest, RunResponse
from onthedot.model.work import Work

__all__ = [
    "ASKED_KINDS",
    "NO_JOB",
    "Attempt",
    "ClaimedRun",
    "Outcome",
    "RecentRun",
    "RefusedResult",
    "RunKind",
    "RunStatus",
    "RunTrigger",
    "RunView",
    "SkipReason",
    "TriggerKind",
    "kind_of_trigger",
    "may_have_begun",
    "run_id",
    "trigger_of",
]

RunStatus = Literal["PENDING", "EXECUTING", "DONE", "FAILED", "CANCELLED", "SKIPPED"]
RunKind = Literal["scheduled", "manual", "backfill", "redrive", "chain"]
SkipReason = Literal[
    "coalesced", "overlap", "late", "paused", "excluded", "deleted", "skipped", "chain_too_long", "restored"
]
ASKED_KINDS: tuple[RunKind, ...] = ("manual", "backfill", "redrive")
"""Of runs that somebody asked for; who that was is kept."""
NO_JOB = -1
"""The version of the job of a run whose job was deleted."""
_SUFFIX = {"scheduled": "", "manual": "-m", "backfill": "-b", "redrive": "-r", "chain": "-c"}
TriggerKind = Literal["schedule", "manual", "backfill", "retry", "chain"]
_TRIGGERS: dict[RunKind, TriggerKind] = {
    "scheduled": "schedule",
    "manual": "manual",
    "backfill": "backfill",
    "redrive": "retry",
    "chain": "chain",
}


def run_id(job_id: int, slot: int, kind: RunKind = "scheduled", n: int = 0) -> str:
    """(job, slot) names a firing for ever: the id is made of it, never of chance."""
    suffix = _SUFFIX[kind]
    return f"{job_id}-{slot}{suffix}{n}" if suffix else f"{job_id}-{slot}"


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How one attempt ended, as the target saw it.

    kind: ok | error | timeout | refused (egress or not registered) | cancelled | interrupted (given back, no try
    counted) | lost (its node died) | unknown (at-most-once, its node died after the send began) | expired
    """

    kind: Literal["ok", "error", "timeout", "refused", "cancelled", "interrupted", "lost", "unknown", "expired"]
    retryable: bool = False
    error: str | None = None
    retry_after_ms: int | None = None
    parks: str | None = None  # why the job is to be paused with the end of this run
    detail: dict[str, Any] = msgspec.field(default_factory=dict)  # status_code, response, exit_code, result …
    """What is told of it beside that. `result` is what the run gives back (see `model.result`)."""

    @property
    def ok(self) -> bool:
        return self.kind == "ok"


class Attempt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One ended attempt; the last 20 stay with the run. Times in ms inside the store, RFC 3339 in a RunView."""

    attempt: int
    node: str
    started_at: int | None
    finished_at: int
    outcome: str
    error: str | None = None
    try_number: int | None = None  # of a run that is completed by callbacks: which try it was, if it counted as one
    completion: Literal["callback", "timeout"] | None = None  # what ended it after it was accepted
    claimed_at: int | None = None


def may_have_begun(tries: int, losses: int, attempts: Sequence[Attempt]) -> bool:
    """Whether an attempt at it may have begun. One that was interrupted counts as no try, but it is kept, with its
    start; one that was lost before it can have begun is kept, too, without."""
    return bool(tries or losses) or any(attempt.started_at is not None for attempt in attempts)


class ClaimedRun(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run that this node owns: the fence is (id, node, token)."""

    id: str
    tenant: int
    job_id: int
    version: int  # of the job whose spec this is; NO_JOB: it was deleted
    spec: JobSpec
    kind: RunKind
    slot: int
    due_at: int
    token: int
    tries: int
    losses: int
    first_claimed_at: int
    recurring: bool  # False: a one-off job's run; its finish ends the job
    attempts: Sequence[Attempt] = ()
    params: dict[str, Any] | None = None  # its own, over those of its job
    retry_until: int | None = None  # tried again only before this instant
    work: Work | None = None  # adopted: what another node has started, or was about to, goes on without it

    @property
    def begun_before(self) -> bool:
        if not self.attempts:  # nearly always, and asked for each run
            return bool(self.tries or self.losses) or self.work is not None
        return may_have_begun(self.tries, self.losses, self.attempts) or self.work is not None


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """`claimed_at`: when its node took the run, which may be ahead of its time; null where that was not recorded."""

    attempt: int
    node: str
    started_at: str | None
    finished_at: str
    outcome: str
    error: str | None = None
    claimed_at: str | None = None


class RefusedResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a node reported of an attempt that was no longer its own: it had been declared lost meanwhile. Nothing of
    the run changed by it. `refused_at`: when it reported."""

    attempt: int
    node: str
    started_at: str | None
    finished_at: str
    outcome: str
    error: str | None
    refused_at: str


class RunTrigger(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What started a run. `run_id`: the run that ended before it (chain), or that this one tries again (retry).
    `actor`: who asked for it (manual, backfill, retry): the name of their API key; "open" on a server without keys."""

    kind: TriggerKind
    run_id: str | msgspec.UnsetType = msgspec.UNSET
    actor: str | msgspec.UnsetType = msgspec.UNSET


def trigger_of(kind: RunKind, parent: str | None, actor: str | None = None) -> RunTrigger:
    return RunTrigger(
        kind=_TRIGGERS[kind],
        run_id=msgspec.UNSET if parent is None else parent,
        actor=msgspec.UNSET if actor is None else actor,
    )


def kind_of_trigger(trigger: TriggerKind) -> RunKind:
    return next(kind for kind, named in _TRIGGERS.items() if named == trigger)


class RecentRun(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One of the last runs of a job, in short. `reason`: why it ended so, in one line; null: it went well."""

    id: str
    status: RunStatus
    scheduled_for: str
    duration_ms: int | None
    lateness_ms: int | None
    reason: str | None


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run as the API shows it. A SKIPPED run may stand for a range: `until` and `slots` say which and how many."""

    id: str
    job_id: int
    key: str | None
    kind: RunKind
    scheduled_for: str
    due_at: str
    status: RunStatus
    reason: str | None
    attempt: int
    tries: int
    losses: int
    node: str | None
    started_at: str | None
    finished_at: str | None
    lateness_ms: int | None
    duration_ms: int | None
    outcome: dict[str, Any] | None
    error: str | None
    attempts: list[AttemptView]
    until: str | None = None
    slots: int | None = None
    params: dict[str, Any] | None = None  # its own; those of its job are under them
    waiting: str | None = None
    """destination: it is due and waits for that, and no attempt is made meanwhile. broker: the same, of a message
    broker. group: as many runs of its concurrency group are running as may. slot: its job or its tenant has its share
    of a node's workers. label: it is due, and no live node has the labels that its job requires. capability: it is due,
    and no live node offers what its target needs. place: its work goes on where no live node reaches it. callback: its
    call was accepted, and the receiver will tell how it ended. check-in: its job runs elsewhere and has not reported
    yet."""
    waiting_since: str | None = None
    """Of label and capability: when it was due; of callback and check-in: when it was started. Null for place: since
    when nobody reaches it is not recorded."""
    waiting_for: str | None = None
    """Which one: "https://example.com", "orders", "db"; the labels that are missing: "eu, gpu"; "function:reports";
    "container@…". Null for callback and check-in."""
    progress: dict[str, Any] | None = None  # what its receiver last said of it: percent, message, at
    result: Any | msgspec.UnsetType = msgspec.UNSET  # what it gave back, if anything; lists leave large ones out
    trigger: RunTrigger = RunTrigger(kind="schedule")
    next_attempt_at: str | None = None  # of a run that failed and waits to be tried again
    request: RunRequest | msgspec.UnsetType | None = msgspec.UNSET  # of its last attempt, redacted; lists leave it out
    response: RunResponse | msgspec.UnsetType | None = msgspec.UNSET  # to its last attempt; lists leave it out
    followers: list[str] | msgspec.UnsetType = msgspec.UNSET  # the runs that its end has started; lists leave it out
    claimed_at: str | None = None  # when its node took it, while it has one
    refused: list[RefusedResult] | msgspec.UnsetType = msgspec.UNSET  # late results of lost nodes; lists leave it out
