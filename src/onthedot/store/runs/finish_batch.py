"""One transaction of finish: what ended, what is tried again, and everything that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from onthedot import telemetry
from onthedot.model.decoding import encode_json
from onthedot.model.result import large_result
from onthedot.model.run import Attempt, Outcome, RunKind
from onthedot.model.work import Work
from onthedot.plan import Accepted, Dead, Decision, Done, RetryLater, ready_at, wait_after_clock_back
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.close_one_offs import note_endings
from onthedot.store.jobs.stats import stats_rows
from onthedot.store.queries import LOG_LIMIT
from onthedot.store.runs.notes import NewNote, ParkNote, park_note
from onthedot.store.runs.orders import OwnedRun, PendingAgain, is_stop, why_stopped
from onthedot.store.runs.row import CALLBACK, OPEN, decode_attempts
from onthedot.store.runs.terminate import firings_of_one_offs, release_lanes
from onthedot.store.shapes import Rows, Shape

__all__ = [
    "KEPT_ATTEMPTS",
    "AcceptedRun",
    "AttemptLog",
    "EndOfTry",
    "FinishBatch",
    "FinishReport",
    "Item",
    "outcome_json",
    "storable",
]

KEPT_ATTEMPTS = 20


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


class DeadLetter(Shape, frozen=True):
    run_id: str
    tenant: int
    job_id: int
    slot: int
    failed_at: int


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


class FinishReport(msgspec.Struct, frozen=True, kw_only=True):
    """refused: not (any longer) this node's. repeated: recorded before, only the answer had been lost."""

    recorded: int
    refused: list[str]
    repeated: list[str]


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

    @property
    def status(self) -> str:
        return self.decision.status if isinstance(self.decision, Done) else "failed"

    def attempt(self) -> Attempt:
        return Attempt(
            attempt=self.token,
            node=self._attempted_by(),
            started_at=self.started_at,
            finished_at=self.finished_at,
            outcome=self.outcome.kind,
            error=storable(self.outcome.error),
            try_number=None if self.end is None else self.end.try_number,
            completion=None if self.end is None else self.end.completion,
        )

    def _attempted_by(self) -> str:
        if self.end is not None and self.end.sender is not None:
            return self.end.sender
        return "" if self.node in (OPEN, CALLBACK) else self.node

    def attempts_json(self) -> str:
        return encode_json([*self.attempts, self.attempt()][-KEPT_ATTEMPTS:]).decode()


def storable(text: str | None) -> str | None:
    """What a target said may hold anything; PostgreSQL stores no NUL, and nobody stores half a surrogate pair."""
    if text is None or (text.isascii() and "\x00" not in text):
        return text
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")


class FinishBatch:
    def __init__(self, items: Sequence[Item], *, dialect: str) -> None:
        self._items = items
        self._dialect = dialect
        self._reset()

    def _reset(self) -> None:
        self._recorded: dict[str, Item] = {}
        self._retried: dict[str, Item] = {}
        self._accepted: dict[str, Item] = {}
        self._orphaned: dict[str, Item] = {}
        self._conflicts: list[str] = []
        self._refused: list[str] = []
        self._repeated: list[str] = []

    async def attempt(self, tx: Transaction) -> None:
        """The whole transaction."""
        self._reset()
        await self._accept(tx)
        ended = [*await self._record(tx, [item for item in self._items if isinstance(item.decision, Done | Dead)])]
        locked = await self._retry(tx)
        ended += await self._record(tx, list(self._orphaned.values()))
        lanes = [*ended, *locked]
        await self._follow_up(tx)
        if ended:
            ended_at = max(item.finished_at for item in self._recorded.values())
            await note_endings(tx, firings_of_one_offs(ended), ended_at)
        await release_lanes(tx, lanes)
        await self._look_up_rest(tx)

    async def _accept(self, tx: Transaction) -> None:
        items = {item.id: item for item in self._items if isinstance(item.decision, Accepted)}
        if items:
            rows = await tx.rows("accept_runs", Rows([_accepted(item) for item in items.values()]))
            self._accepted = {row["id"]: items[row["id"]] for row in rows}

    async def _record(self, tx: Transaction, items: Sequence[Item]) -> Sequence[Row]:
        if not items:
            return []
        by_id = {item.id: item for item in items}
        rows = Rows([_ended_run(item) for item in items])
        if self._dialect == "postgres":
            gone = await tx.rows("finish_record", rows)
            self._conflicts += [row["id"] for row in gone if not row["recorded"]]
        else:
            gone = await tx.rows("finish_lock", Rows([_owned(item) for item in items]))
            there = {row["id"] for row in await tx.rows("finish_record", rows)}
            self._conflicts += [row["id"] for row in gone if row["id"] not in there]
            await tx.execute("delete_runs", [row["id"] for row in gone])
        self._recorded |= {row["id"]: by_id[row["id"]] for row in gone}
        return gone

    async def _retry(self, tx: Transaction) -> Sequence[Row]:
        items = {item.id: item for item in self._items if isinstance(item.decision, RetryLater)}
        if not items:
            return []
        locked = await tx.rows("finish_lock", Rows([_owned(item) for item in items.values()]))
        if not locked:
            return []
        now = await tx.now()
        again = [
            _pending_again(
                items[row["id"]], ready_at(row["due_at"], lane=bool(row["lane"]), lookahead=tx.lookahead), now
            )
            for row in locked
            if not is_stop(row["orders"])
        ]
        back = {row["id"] for row in await tx.rows("finish_retry", Rows(again))} if again else set()
        self._retried = {run_id: items[run_id] for run_id in back}
        self._orphaned = {row["id"]: _ends(items[row["id"]], row) for row in locked if row["id"] not in back}
        return locked

    async def _follow_up(self, tx: Transaction) -> None:
        recorded = self._recorded.values()
        stats = stats_rows(item for item in recorded if item.recurring and item.status in ("done", "failed"))
        if stats:
            await tx.execute("add_stats", Rows(stats))
        dead = [
            DeadLetter(item.id, item.tenant, item.job_id, item.slot, item.finished_at)
            for item in recorded
            if isinstance(item.decision, Dead)
        ]
        if dead:
            await tx.execute("add_dead_letters", Rows(dead))
        logs = [
            AttemptLog(item.id, item.tenant, (storable(item.log) or "")[-LOG_LIMIT:], item.finished_at)
            for item in (*recorded, *self._retried.values())
            if item.log
        ]
        if logs:
            await tx.execute("add_logs", Rows(logs))
        notes = self._notes()
        if notes:
            await tx.execute("add_notes", Rows(notes))

    def _notes(self) -> list[NewNote]:
        """What these ends cause elsewhere, and what receivers asked for that accepted a call for later."""
        told = (*self._recorded.values(), *self._accepted.values())
        return [_park_note(item, reason) for item in told if (reason := item.outcome.parks) is not None]

    async def _look_up_rest(self, tx: Transaction) -> None:
        known = self._recorded.keys() | self._retried.keys() | self._accepted.keys()
        rest = [item for item in self._items if item.id not in known]
        if not rest:
            return
        tokens = {item.id: item.token for item in rest}
        rows = Rows([UnmatchedRun(item.id, item.tenant, item.slot, item.token) for item in rest])
        for row in await tx.rows("finish_lookup", rows):
            token = tokens[row["id"]]
            there = row["recorded"] == token or any(
                a.attempt == token and a.outcome != "lost" for a in decode_attempts(row["attempts"])
            )
            there = there or (row["open"] == CALLBACK and row["token"] == token)
            (self._repeated if there else self._refused).append(row["id"])

    def report(self) -> FinishReport:
        recorded = len(self._recorded) + len(self._retried) + len(self._accepted)
        return FinishReport(recorded=recorded, refused=self._refused, repeated=self._repeated)

    def written(self) -> list[Item]:
        """What this batch ended or put back."""
        return [*self._recorded.values(), *self._retried.values()]

    def announce(self) -> None:
        """After the commit. Per run only what an operator must hear of; the engine says the rest."""
        for run_id in self._conflicts:
            telemetry.emit("ledger.conflict", run_id=run_id)
        for run_id in self._refused:
            telemetry.emit("run.refused", run_id=run_id)


def _park_note(item: Item, reason: str) -> NewNote:
    said = ParkNote(version=item.version, reason=reason)
    return park_note(item.tenant, item.job_id, item.id, said, item.finished_at)


def _ends(item: Item, row: Row) -> Item:
    """It would be tried again, but it was cancelled or replaced before its node had read so, or its job is gone. The
    attempt is told all the same: it was made."""
    assert isinstance(item.decision, RetryLater)
    reason = why_stopped(row["orders"]) if is_stop(row["orders"]) else "the job was deleted"
    decision = Done(status="cancelled", tries=item.decision.tries, losses=item.decision.losses, reason=reason)
    return msgspec.structs.replace(item, decision=decision)


def _owned(item: Item) -> OwnedRun:
    return OwnedRun(item.id, item.token, item.node)


def _ended_run(item: Item) -> EndedRun:
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


def _accepted(item: Item) -> AcceptedRun:
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


def _pending_again(item: Item, earliest: int, now: int) -> PendingAgain:
    """If the clock was set back while it ran, it ended in the future, or was tried before its time has come."""
    decision = item.decision
    assert isinstance(decision, RetryLater)
    back = wait_after_clock_back(earliest, decision.ready_at, item.finished_at, now)
    return PendingAgain(
        id=item.id,
        ready_at=max(decision.ready_at, earliest) if back is None else back,
        tries=decision.tries,
        losses=decision.losses,
        attempts=item.attempts_json(),
        cursor=False,
    )
