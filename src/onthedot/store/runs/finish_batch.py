"""One transaction of finish: what ended, what is tried again, and everything that follows from it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot import telemetry
from onthedot.model.alerts import Alerting
from onthedot.model.chains import ChainTrigger, followers
from onthedot.model.job import JobSpec
from onthedot.model.result import read_result
from onthedot.plan import Accepted, Dead, Done, RetryLater, cause_of, ready_at
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.close_one_offs import note_endings
from onthedot.store.jobs.noticed import noticed_of
from onthedot.store.jobs.stats import stats_rows
from onthedot.store.queries import LOG_LIMIT
from onthedot.store.runs.alert_notes import end_note
from onthedot.store.runs.finish_rows import (
    AttemptLog,
    DeadLetter,
    Item,
    UnmatchedRun,
    accepted_run,
    ended_run,
    pending_again,
    refused_row,
    storable,
)
from onthedot.store.runs.groups import settle_groups
from onthedot.store.runs.notes import ChainNote, NewNote, ParkNote, chain_note, park_note
from onthedot.store.runs.orders import OwnedRun, is_stop, why_stopped
from onthedot.store.runs.row import CALLBACK, decode_attempts
from onthedot.store.runs.terminate import firings_of_one_offs, release_lanes
from onthedot.store.shapes import Rows

__all__ = ["FinishBatch", "FinishReport"]


class FinishReport(msgspec.Struct, frozen=True, kw_only=True):
    """refused: not (any longer) this node's. repeated: recorded before, only the answer had been lost. noted: there are
    notes of what these ends cause elsewhere."""

    recorded: int
    refused: list[str]
    repeated: list[str]
    noted: bool = False
    called: int = 0  # runs that waited for their group, and whose turn has come with these ends


class FinishBatch:
    """Written in the order of ids, which is the one in which verbs lock runs."""

    def __init__(self, items: Sequence[Item], *, dialect: str) -> None:
        self._items = sorted(items, key=lambda item: item.id)
        self._dialect = dialect
        self._reset()

    def _reset(self) -> None:
        self._recorded: dict[str, Item] = {}
        self._retried: dict[str, Item] = {}
        self._accepted: dict[str, Item] = {}
        self._orphaned: dict[str, Item] = {}
        self._conflicts: list[str] = []
        self._noted = False
        self._refused: list[str] = []
        self._repeated: list[str] = []
        self._called = 0

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
        await self._add_up(tx)
        self._called = await settle_groups(tx, lanes)  # last: who has locked a group waits for nothing any more

    async def _accept(self, tx: Transaction) -> None:
        items = {item.id: item for item in self._items if isinstance(item.decision, Accepted)}
        if items:
            rows = await tx.rows("accept_runs", Rows([accepted_run(item) for item in items.values()]))
            self._accepted = {row["id"]: items[row["id"]] for row in rows}
            reported = [run_id for run_id, item in self._accepted.items() if _is_reported(item)]
            if reported:
                await tx.execute("hasten_reported", reported)

    async def _record(self, tx: Transaction, items: Sequence[Item]) -> Sequence[Row]:
        if not items:
            return []
        by_id = {item.id: item for item in items}
        rows = Rows([ended_run(item) for item in items])
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
            pending_again(
                items[row["id"]],
                ready_at(row["due_at"], lane=bool(row["lane"]), lookahead=tx.lookahead),
                now,
                row["claimed_at"],
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
        dead = [
            DeadLetter(
                item.id,
                item.tenant,
                item.job_id,
                item.slot,
                item.finished_at,
                storable(cause_of(item.outcome, item.target)) or "unknown",
            )
            for item in recorded
            if isinstance(item.decision, Dead)
        ]
        if dead and await tx.execute("add_dead_letters", Rows(dead)) < len(dead):
            await tx.execute("keep_late_dead_letters", Rows(dead))
        logs = [
            AttemptLog(item.id, item.tenant, (storable(item.log) or "")[-LOG_LIMIT:], item.finished_at)
            for item in (*recorded, *self._retried.values())
            if item.log
        ]
        if logs:
            await tx.execute("add_logs", Rows(logs))
        notes = self._notes(tx.alerting)
        if notes:
            self._noted = True
            await tx.execute("add_notes", Rows(notes))

    async def _add_up(self, tx: Transaction) -> None:
        """What is one row for all runs of a job: all nodes write it, and wait for who has it. So it comes late, where
        no more than a round trip or two is left to the commit, however slow the way of this node may be."""
        recorded = self._recorded.values()
        stats = stats_rows(item for item in recorded if item.recurring and item.status in ("done", "failed"))
        if stats:
            await tx.execute("add_stats", Rows(stats))
        noticed = noticed_of((item.tenant, item.recurring, item) for item in recorded)
        if noticed:
            await tx.execute("notice_jobs", Rows(noticed))

    def _notes(self, alerting: Alerting) -> list[NewNote]:
        """What these ends cause elsewhere, and what receivers asked for that accepted a call for later."""
        told = (*self._recorded.values(), *self._accepted.values())
        parks = [_park_note(item, reason) for item in told if (reason := item.outcome.parks) is not None]
        ended = [item for item in self._recorded.values() if item.chained is not None]
        chains = [_chain_note(item, item.chained) for item in ended if item.id not in self._conflicts]
        tried = (*self._recorded.values(), *self._retried.values())
        alerts = [end_note(item, alerting) for item in tried if item.id not in self._conflicts]
        return [*parks, *(note for note in (*chains, *alerts) if note is not None)]

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
        await self._keep_refused(tx, rest)

    async def _keep_refused(self, tx: Transaction, rest: Sequence[Item]) -> None:
        """For whoever asks what became of the run: its node came back, and what it said of it changed nothing."""
        refused = set(self._refused)
        kept = [row for item in rest if item.id in refused and (row := refused_row(item)) is not None]
        if kept:
            await tx.execute("add_refused", Rows(kept))

    def report(self) -> FinishReport:
        recorded = len(self._recorded) + len(self._retried) + len(self._accepted)
        return FinishReport(
            recorded=recorded,
            refused=self._refused,
            repeated=self._repeated,
            noted=self._noted,
            called=self._called,
        )

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


def _chain_note(item: Item, job: JobSpec | None) -> NewNote | None:
    """None: nobody follows this end. Whoever was cancelled, replaced or skipped starts nobody."""
    done = item.status == "done"
    if job is None or not (done or isinstance(item.decision, Dead)):
        return None
    keys = followers(job, done=done)
    if not keys:
        return None
    trigger = ChainTrigger(
        job_key=job.key,
        job_id=item.job_id,
        run_id=item.id,
        status="DONE" if done else "FAILED",
        result=read_result(dict(item.outcome.detail)),
        error=storable(item.outcome.error),
    )
    return chain_note(item.tenant, ChainNote(keys=keys, trigger=trigger), item.finished_at)


def _ends(item: Item, row: Row) -> Item:
    """It would be tried again, but it was cancelled or replaced before its node had read so, or its job is gone. The
    attempt is told all the same: it was made."""
    assert isinstance(item.decision, RetryLater)
    reason = why_stopped(row["orders"]) if is_stop(row["orders"]) else "the job was deleted"
    decision = Done(status="cancelled", tries=item.decision.tries, losses=item.decision.losses, reason=reason)
    return msgspec.structs.replace(item, decision=decision)


def _is_reported(item: Item) -> bool:
    """Its job runs elsewhere, and may have reported it before it was open (see `runs.checkins`)."""
    return item.target is not None and item.target.report_within is not None


def _owned(item: Item) -> OwnedRun:
    return OwnedRun(item.id, item.token, item.node)
