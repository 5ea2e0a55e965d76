"""One transaction of finish: what ended, what is tried again, and everything that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from onthedot import telemetry
from onthedot.model.decoding import encode_json
from onthedot.model.run import Attempt, Outcome, RunKind
from onthedot.plan import Dead, Decision, Done, RetryLater
from onthedot.store.driver import Row, Rows, Transaction
from onthedot.store.jobs.close_one_offs import note_endings
from onthedot.store.jobs.stats import stats_rows
from onthedot.store.runs.order_text import is_stop, why_stopped
from onthedot.store.runs.rows import decode_attempts
from onthedot.store.runs.terminate import firings_of_one_offs, release_lanes

__all__ = ["KEPT_ATTEMPTS", "LONGEST_LOG", "FinishBatch", "FinishReport", "Item", "outcome_json", "storable"]

KEPT_ATTEMPTS = 20
LONGEST_LOG = 65_536


class FinishReport(msgspec.Struct, frozen=True, kw_only=True):
    """refused: not (any longer) this node's. repeated: recorded before, only the answer had been lost."""

    recorded: int
    refused: list[str]
    repeated: list[str]


class Item(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One ended attempt with its fence; of a live node's own, or of a lost one's."""

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

    @property
    def status(self) -> str:
        return self.decision.status if isinstance(self.decision, Done) else "failed"

    def attempt(self) -> Attempt:
        return Attempt(
            attempt=self.token,
            node=self.node,
            started_at=self.started_at,
            finished_at=self.finished_at,
            outcome=self.outcome.kind,
            error=storable(self.outcome.error),
        )

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
        self._orphaned: dict[str, Item] = {}
        self._conflicts: list[str] = []
        self._refused: list[str] = []
        self._repeated: list[str] = []

    async def attempt(self, tx: Transaction) -> None:
        """The whole transaction."""
        self._reset()
        ended = [*await self._record(tx, [item for item in self._items if not isinstance(item.decision, RetryLater)])]
        locked = await self._retry(tx)
        ended += await self._record(tx, list(self._orphaned.values()))
        lanes = [*ended, *locked]
        await self._follow_up(tx)
        if ended:
            ended_at = max(item.finished_at for item in self._recorded.values())
            await note_endings(tx, firings_of_one_offs(ended), ended_at)
        await release_lanes(tx, lanes)
        await self._look_up_rest(tx)

    async def _record(self, tx: Transaction, items: Sequence[Item]) -> Sequence[Row]:
        if not items:
            return []
        by_id = {item.id: item for item in items}
        rows = Rows([_history_row(item) for item in items])
        if self._dialect == "postgres":
            gone = await tx.rows("finish_record", rows)
            self._conflicts += [row["id"] for row in gone if not row["recorded"]]
        else:
            gone = await tx.rows("finish_lock", Rows([(item.id, item.token, item.node) for item in items]))
            there = {row["id"] for row in await tx.rows("finish_record", rows)}
            self._conflicts += [row["id"] for row in gone if row["id"] not in there]
            await tx.execute("delete_runs", [row["id"] for row in gone])
        self._recorded |= {row["id"]: by_id[row["id"]] for row in gone}
        return gone

    async def _retry(self, tx: Transaction) -> Sequence[Row]:
        items = {item.id: item for item in self._items if isinstance(item.decision, RetryLater)}
        if not items:
            return []
        fences = Rows([(item.id, item.token, item.node) for item in items.values()])
        locked = await tx.rows("finish_lock", fences)
        if not locked:
            return []
        again = [_retry_row(items[row["id"]]) for row in locked if not is_stop(row["orders"])]
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
            (item.id, item.tenant, item.job_id, item.slot, item.finished_at)
            for item in recorded
            if isinstance(item.decision, Dead)
        ]
        if dead:
            await tx.execute("add_dead_letters", Rows(dead))
        logs = [
            (item.id, item.tenant, (storable(item.log) or "")[-LONGEST_LOG:], item.finished_at)
            for item in (*recorded, *self._retried.values())
            if item.log
        ]
        if logs:
            await tx.execute("add_logs", Rows(logs))

    async def _look_up_rest(self, tx: Transaction) -> None:
        known = self._recorded.keys() | self._retried.keys()
        rest = [item for item in self._items if item.id not in known]
        if not rest:
            return
        tokens = {item.id: item.token for item in rest}
        rows = Rows([(item.id, item.tenant, item.slot, item.token) for item in rest])
        for row in await tx.rows("finish_lookup", rows):
            token = tokens[row["id"]]
            there = row["recorded"] == token or any(
                a.attempt == token and a.outcome != "lost" for a in decode_attempts(row["attempts"])
            )
            (self._repeated if there else self._refused).append(row["id"])

    def report(self) -> FinishReport:
        recorded = len(self._recorded) + len(self._retried)
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


def _ends(item: Item, row: Row) -> Item:
    """It would be tried again, but it was cancelled or replaced before its node had read so, or its job is gone. The
    attempt is told all the same: it was made."""
    assert isinstance(item.decision, RetryLater)
    reason = why_stopped(row["orders"]) if is_stop(row["orders"]) else "the job is gone"
    decision = Done(status="cancelled", tries=item.decision.tries, losses=item.decision.losses, reason=reason)
    return msgspec.structs.replace(item, decision=decision)


def _history_row(item: Item) -> tuple[Any, ...]:
    decision, outcome = item.decision, item.outcome
    return (
        item.id,
        item.token,
        item.node,
        item.status,
        None if isinstance(decision, RetryLater) else decision.reason,
        decision.tries,
        decision.losses,
        item.started_at,
        item.finished_at,
        item.lateness_ms,
        item.duration_ms,
        outcome_json(outcome),
        storable(outcome.error),
        item.attempts_json() if item.attempts else None,
    )


def outcome_json(outcome: Outcome) -> str:
    """The error has its own column, and what decided about a retry is of no use any more."""
    if not outcome.detail:
        return f'{{"kind":"{outcome.kind}"}}'
    return encode_json({"kind": outcome.kind, **outcome.detail}).decode()


def _retry_row(item: Item) -> tuple[Any, ...]:
    decision = item.decision
    assert isinstance(decision, RetryLater)
    return item.id, decision.ready_at, decision.tries, decision.losses, item.attempts_json(), False
