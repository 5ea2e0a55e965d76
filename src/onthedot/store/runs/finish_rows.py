"""What finish writes of one ended attempt: into the ledger, back into the queue, or open until its callback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from onthedot.model.decoding import encode_json
from onthedot.model.job import JobSpec
from onthedot.model.result import large_result
from onthedot.model.run import Attempt, Outcome, RunKind
from onthedot.model.targets.spec import Target
from onthedot.model.work import Work
from onthedot.plan import Accepted, Dead, Decision, Done, RetryLater, wait_after_clock_back
from onthedot.store.runs.orders import PendingAgain
from onthedot.store.runs.row import CALLBACK, OPEN
from onthedot.store.shapes import Shape

__all__ = [
    "AcceptedRun",
    "AttemptLog",
    "DeadLetter",
    "EndOfTry",
    "EndedRun",
    "Item",
    "RefusedRow",
    "UnmatchedRun",
    "accepted_run",
    "ended_run",
    "outcome_json",
    "pending_again",
    "refused_row",
    "storable",
]

KEPT_ATTEMPTS = 20
REFUSED_ERROR = 1000
"""Characters that are kept of the error of a refused result."""


class EndedRun(Shape, frozen=True, kw_only=True):
    """What the ledger gets of a run that ended, beside what its row knows; id, token and node are its fence."""

    id: str
    token: int
    node: str
    status: str
    reason: str | None
    tries: int
    losses: int
    started_at: int | None
    finished_at: int
    lateness_ms: int | None
    duration_ms: int | None
    outcome: str
    error: str | None
    attempts: str | None
    result: str | None  # one that is too large for its outcome


class UnmatchedRun(Shape, frozen=True):
    """A run whose fence did not match: what became of it?"""

    id: str
    tenant: int
    slot: int
    token: int


class RefusedRow(Shape, frozen=True, kw_only=True):
    """What a node reported of an attempt that was no longer its own."""

    run_id: str
    token: int
    node: str
    tenant: int
    started_at: int | None
    finished_at: int
    outcome: str
    error: str | None


class DeadLetter(Shape, frozen=True):
    run_id: str
    tenant: int
    job_id: int
    slot: int
    failed_at: int
    cause: str


class AttemptLog(Shape, frozen=True):
    run_id: str
    tenant: int
    log: str
    updated_at: int


class AcceptedRun(Shape, frozen=True, kw_only=True):
    """A run that waits for its callback, with its fence. Not `certain`: the time counts from when it was sent."""

    id: str
    token: int
    node: str
    started_at: int | None
    within_ms: int
    certain: bool
    work: str


class EndOfTry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a later callback for the same try must be able to see: which try it was, and how it ended if it had been
    accepted. `sender`: the node that made the call."""

    try_number: int
    completion: Literal["callback", "timeout"] | None = None
    sender: str | None = None


class Item(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One ended attempt with its fence; of a live node's own, of a lost one's, or of none: of an open run it is how it
    is open that stands for the node."""

    id: str
    token: int
    node: str
    tenant: int
    job_id: int
    version: int
    slot: int
    kind: RunKind
    recurring: bool
    attempts: Sequence[Attempt]
    outcome: Outcome
    decision: Decision
    started_at: int | None
    finished_at: int
    lateness_ms: int | None
    duration_ms: int | None
    log: str | None
    end: EndOfTry | None = None  # of runs that are completed by callbacks
    chained: JobSpec | None = None  # its job, if that names others that follow
    target: Target | None = None
    job: JobSpec | None = None  # as the run had read it

    @property
    def status(self) -> str:
        return self.decision.status if isinstance(self.decision, Done) else "failed"

    def attempt(self, claimed_at: int | None = None) -> Attempt:
        return Attempt(
            attempt=self.token,
            node=self._attempted_by(),
            started_at=self.started_at,
            finished_at=self.finished_at,
            outcome=self.outcome.kind,
            error=storable(self.outcome.error),
            try_number=None if self.end is None else self.end.try_number,
            completion=None if self.end is None else self.end.completion,
            claimed_at=claimed_at,
        )

    def _attempted_by(self) -> str:
        if self.end is not None and self.end.sender is not None:
            return self.end.sender
        return "" if self.node in (OPEN, CALLBACK) else self.node

    def attempts_json(self, claimed_at: int | None = None) -> str:
        return encode_json([*self.attempts, self.attempt(claimed_at)][-KEPT_ATTEMPTS:]).decode()


def storable(text: str | None) -> str | None:
    """What a target said may hold anything; PostgreSQL stores no NUL, and nobody stores half a surrogate pair."""
    if text is None or (text.isascii() and "\x00" not in text):
        return text
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")


def ended_run(item: Item) -> EndedRun:
    decision = item.decision
    outcome, result = large_result(item.outcome)
    return EndedRun(
        id=item.id,
        token=item.token,
        node=item.node,
        status=item.status,
        reason=decision.reason if isinstance(decision, Done | Dead) else None,
        tries=decision.tries,
        losses=decision.losses,
        started_at=item.started_at,
        finished_at=item.finished_at,
        lateness_ms=item.lateness_ms,
        duration_ms=item.duration_ms,
        outcome=outcome_json(outcome),
        error=storable(outcome.error),
        attempts=item.attempts_json() if item.attempts or item.end is not None else None,
        result=result,
    )


def accepted_run(item: Item) -> AcceptedRun:
    decision = item.decision
    assert isinstance(decision, Accepted)
    answer = {name: value for name, value in item.outcome.detail.items() if name in ("status_code", "response")}
    work = Work(
        target={},
        try_number=decision.tries + 1,
        place=item.node,
        started_at=item.started_at,
        lateness_ms=item.lateness_ms,
        accepted=answer if decision.certain else None,
    )
    return AcceptedRun(
        id=item.id,
        token=item.token,
        node=item.node,
        started_at=item.started_at,
        within_ms=int(decision.within_ms),
        certain=decision.certain,
        work=encode_json(work).decode(),
    )


def outcome_json(outcome: Outcome) -> str:
    """The error has its own column, and what decided about a retry is of no use any more."""
    if not outcome.detail:
        return f'{{"kind":"{outcome.kind}"}}'
    return encode_json({"kind": outcome.kind, **outcome.detail}).decode()


def refused_row(item: Item) -> RefusedRow | None:
    """None: no node reports it. That a node was lost is what its peers say of it, and open runs have none."""
    if item.outcome.kind == "lost" or item.node in (OPEN, CALLBACK):
        return None
    error = storable(item.outcome.error)
    return RefusedRow(
        run_id=item.id,
        token=item.token,
        node=item.node,
        tenant=item.tenant,
        started_at=item.started_at,
        finished_at=item.finished_at,
        outcome=item.outcome.kind,
        error=error if error is None else error[:REFUSED_ERROR],
    )


def pending_again(item: Item, earliest: int, now: int, claimed_at: int | None) -> PendingAgain:
    """If the clock was set back while it ran, it ended in the future, or was tried before its time has come."""
    decision = item.decision
    assert isinstance(decision, RetryLater)
    back = wait_after_clock_back(earliest, decision.ready_at, item.finished_at, now)
    return PendingAgain(
        id=item.id,
        ready_at=max(decision.ready_at, earliest) if back is None else back,
        tries=decision.tries,
        losses=decision.losses,
        attempts=item.attempts_json(claimed_at),
        cursor=False,
    )
