"""Runs that are completed by a callback: their call was accepted, no node has them, and the receiver tells how they
ended.

`runs.state` stays 'running', `node` is null, `open` is 'callback', `open_until` is when it is too late. A callback is
finish by another door: its credential is the token of its try, not (node, token). So it is valid in whatever state the
run is found, also before the node has recorded that its call was accepted: what the node reports then is a repeat. Runs
alone are locked here, as by every finish.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec

from onthedot.errors import Conflict
from onthedot.model.decoding import encode_json
from onthedot.model.instant import format_instant
from onthedot.model.policy import Policy
from onthedot.model.result import settled
from onthedot.model.run import Outcome, RunView
from onthedot.model.work import Work
from onthedot.plan import Decision, Done, Standing, not_completed, on_complete, on_outcome, standing_of
from onthedot.store.driver import Transaction
from onthedot.store.runs.finish_batch import FinishBatch
from onthedot.store.runs.finish_rows import AttemptLog, EndOfTry, Item
from onthedot.store.runs.lists import no_run, read_run
from onthedot.store.runs.open_rows import ended_item, run_of, work_of
from onthedot.store.runs.orders import is_stop, why_stopped
from onthedot.store.runs.row import decode_attempts, parse_run_id
from onthedot.store.shapes import Rows
from onthedot.store.topic import Topic

__all__ = ["Callbacks", "Completed", "cancel_open", "overdue_callback"]

STILL_WORKING = "cancelled; the receiver may still be working"

_Row = dict[str, Any]


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a callback: the run as it is now, and what was written, if anything was."""

    run: RunView
    tenant: int
    standing: Standing
    written: Item | None = None
    key: str | None = None
    laned: bool = False


class Callbacks(Topic):
    async def complete(self, run_id: str, try_number: int, outcome: Outcome) -> Completed:
        """The receiver of that try says how it ended. Whoever waited for the answer and is gone: it counts."""

        async def body(tx: Transaction) -> Completed:
            row = await _locked(tx, run_id)
            if row is None:
                return await _ended(tx, run_id, try_number)
            standing = standing_of(try_number, row["tries"], decode_attempts(row["attempts"]), ended=False)
            batch, item = None, None
            if standing in (Standing.CURRENT, Standing.EARLIER):
                item = _completed(row, try_number, outcome, earlier=standing is Standing.EARLIER)
            if item is not None:
                await tx.execute("hold_for_callback", run_id)
                batch = FinishBatch([item], dialect=self.driver.dialect)
                await batch.attempt(tx)
                (item,) = batch.written()
            elif standing is Standing.OVER:
                await _note(tx, row["tenant"], run_id, try_number, row["now"])
            view = await read_run(tx, row["tenant"], run_id)
            return Completed(
                run=view,
                tenant=row["tenant"],
                standing=standing,
                written=item,
                key=view.key,
                laned=row["lane"] is not None,
            )

        return await self.driver.transact_slow(body)

    async def set_progress(self, run_id: str, try_number: int, said: dict[str, Any]) -> None:
        """What the receiver of that try says of it. Conflict: that try is over."""

        async def body(tx: Transaction) -> bool:
            told = encode_json({**said, "at": format_instant(await tx.now())}).decode()
            if await tx.execute("set_progress", run_id, try_number, told):
                return True
            job_id, slot = parse_run_id(run_id)
            if await tx.row("find_live", run_id) is None and await tx.row("find_ended", run_id, job_id, slot) is None:
                raise no_run(run_id)
            return False

        if not await self.driver.transact_slow(body):
            raise Conflict(f"try {try_number} of run {run_id} has ended")


async def _locked(tx: Transaction, run_id: str) -> _Row | None:
    row = await tx.row("lock_run_alone", run_id)
    return None if row is None else {**dict(row), "now": await tx.now()}


async def _ended(tx: Transaction, run_id: str, try_number: int) -> Completed:
    job_id, slot = parse_run_id(run_id)
    row = await tx.row("find_ended", run_id, job_id, slot)
    if row is None:
        raise no_run(run_id)
    standing = standing_of(try_number, row["tries"], decode_attempts(row["attempts"]), ended=True)
    if standing is Standing.OVER:
        await _note(tx, row["tenant"], run_id, try_number, await tx.now())
    return Completed(run=await read_run(tx, row["tenant"], run_id), tenant=row["tenant"], standing=standing)


async def _note(tx: Transaction, tenant: int, run_id: str, try_number: int, now: int) -> None:
    """A callback that came too late is told in the run's log: a run that is over does not change."""
    text = f"{format_instant(now)} a callback for try {try_number} was refused: the try had already ended\n"
    await tx.execute("add_logs", Rows([AttemptLog(run_id, tenant, text, now)]))


def _completed(row: _Row, try_number: int, outcome: Outcome, *, earlier: bool) -> Item | None:
    """None: nothing changes."""
    work = work_of(row)
    run = run_of(row, work)
    if work is not None and work.accepted is not None:
        outcome = msgspec.structs.replace(outcome, detail={**work.accepted, **outcome.detail})
    outcome = settled(outcome, keep=run.spec.keep_result)
    chance = random.Random(f"{run.id} {run.token}")
    pending = row["state"] == "pending"
    decision = on_complete(run, outcome, row["now"], chance, earlier=earlier, pending=pending)
    if decision is None:
        return None
    end = EndOfTry(try_number=try_number, completion="callback", sender=_sender(work, row))
    return ended_item(row, run, work, outcome, decision, end)


def overdue_callback(row: _Row) -> Item:
    """No callback came in time; or the run was replaced meanwhile."""
    work = work_of(row)
    run = run_of(row, work)
    accepted = work is not None and work.accepted is not None
    outcome, decision = _decide(row, None if row["spec"] is None else run.spec.policy, accepted)
    if decision is None:
        decision = on_outcome(run, outcome, row["now"], random.Random(f"{run.id} {run.token}"))
    end = EndOfTry(try_number=run.tries + 1, completion="timeout", sender=_sender(work, row))
    return ended_item(row, run, work, outcome, decision, end)


def _decide(row: _Row, policy: Policy | None, accepted: bool) -> tuple[Outcome, Decision | None]:
    if is_stop(row["orders"]):
        return _stopped(row, why_stopped(row["orders"]))
    return not_completed(policy, accepted=accepted), None


def _stopped(row: _Row, reason: str) -> tuple[Outcome, Decision]:
    done = Done(status="cancelled", tries=row["tries"] + 1, losses=row["losses"], reason=reason)
    return Outcome(kind="cancelled", error=STILL_WORKING), done


async def cancel_open(tx: Transaction, run_id: str, *, dialect: str) -> None:
    """A run that waits for its callback ends at once: there is no node that could be asked."""
    row = await _locked(tx, run_id)
    assert row is not None
    work = work_of(row)
    outcome, decision = _stopped(row, "cancelled")
    end = EndOfTry(try_number=row["tries"] + 1, completion="timeout", sender=_sender(work, row))
    batch = FinishBatch([ended_item(row, run_of(row, work), work, outcome, decision, end)], dialect=dialect)
    await batch.attempt(tx)


def _sender(work: Work | None, row: _Row) -> str:
    return work.place if work is not None else row["node"] or ""
