"""The good case of finish: runs that went well at their first attempt, which is nearly all of them.

On PostgreSQL it is one statement and one round trip, without BEGIN and COMMIT; on SQLite one trip to the writer's
thread, where a statement for each row is cheaper than taking a JSON text apart (ADR 0006 has the figures).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import msgspec
from msgspec import UNSET

from onthedot.model.alerts import Alerting, own_rule
from onthedot.model.result import large_result
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.plan import FIRINGS, Decision, laned
from onthedot.plan.alerts import exceeds, rules_of
from onthedot.plan.outcome import AT_FIRST_TRY
from onthedot.store.driver import Collision, Driver, Transaction
from onthedot.store.jobs.close_one_offs import note_endings
from onthedot.store.jobs.noticed import is_late, noticed_of
from onthedot.store.jobs.stats import stats_rows
from onthedot.store.runs.finish_rows import EndOfTry, Item, outcome_json
from onthedot.store.runs.terminate import firings_of_one_offs
from onthedot.store.shapes import Rows, Shape

__all__ = ["Finished", "is_unusual", "item_of", "record_done", "went_well"]


class Finished(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How an attempt ended, and what `plan` decided to make of it. Times in ms on the database's clock."""

    run: ClaimedRun
    outcome: Outcome
    decision: Decision
    started_at: int | None
    finished_at: int
    lateness_ms: int | None = None
    duration_ms: int | None = None
    log: str | None = None


class DoneRun(Shape, frozen=True, kw_only=True):
    """What the ledger gets of a run that went well, beside what its row knows."""

    id: str
    token: int
    started_at: int | None
    finished_at: int
    lateness_ms: int | None
    duration_ms: int | None
    outcome: str


def went_well(result: Finished) -> bool:
    """Nothing follows from it: no retry, dead letter or log, no earlier attempt to keep, nobody waits for a lane, no
    other job is concerned."""
    run, outcome = result.run, result.outcome
    spec = run.spec
    return (
        result.decision is AT_FIRST_TRY
        and not run.attempts
        and not result.log
        and outcome.error is None
        and outcome.parks is None
        and not laned(spec.policy)
        and not spec.on_success
        and not spec.on_finish
        and (not spec.keep_result or large_result(outcome)[1] is None)
        and (spec.alerts is UNSET or not exceeds((own_rule(spec.alerts),), result.lateness_ms, result.duration_ms))
    )


def is_unusual(result: Finished, alerting: Alerting) -> bool:
    """Whether a rule of the installation wants to hear of a run that went well."""
    return exceeds(rules_of(result.run.spec, alerting), result.lateness_ms, result.duration_ms)


async def record_done(driver: Driver, node: str, results: Sequence[Finished]) -> list[Finished]:
    """Write them. Answers those that matched nothing: whose they are, or what became of them, is not for here."""
    ordered = sorted(results, key=_id)  # verbs lock the runs of a job in this order too
    also = "also.stats" if any(map(_recurring, ordered)) else "also.nothing"
    done = [_done(result) for result in ordered]
    rest = await _record(driver, node, ordered, done, also)
    if not rest:
        await _notice(driver, node, ordered)
    return rest


async def _record(
    driver: Driver, node: str, ordered: list[Finished], done: Sequence[DoneRun], also: str
) -> list[Finished]:
    try:
        if driver.dialect == "postgres":
            if len(done) == 1:
                return [] if await driver.statement(f"finish_one+{also}", node, *done, repeatable=True) else ordered
            return await _in_one_statement(driver, f"finish_done+{also}", node, ordered, done)
        await driver.transact(_Each(f"finish_done+{also}", node, ordered, done).write)
    except (Collision, _NotAll):  # a slot that is in the ledger already is found, and told, on the long way
        return ordered
    return []


async def _notice(driver: Driver, node: str, results: Sequence[Finished]) -> None:
    """A statement of its own, and only where a job was late: on time it costs nothing. Lost with its node, the job is
    noticed when it is late again."""
    late = {result.run.job_id: result for result in results if result.run.recurring and is_late(result.lateness_ms)}
    if late:
        noticed = noticed_of((result.run.tenant, True, item_of(node, result)) for result in late.values())
        await driver.statement("notice_jobs", Rows(noticed), repeatable=True)


_id = attrgetter("run.id")
_recurring = attrgetter("run.recurring")


def _done(result: Finished) -> DoneRun:
    run = result.run
    return DoneRun(
        id=run.id,
        token=run.token,
        started_at=result.started_at,
        finished_at=result.finished_at,
        lateness_ms=result.lateness_ms,
        duration_ms=result.duration_ms,
        outcome=outcome_json(result.outcome),
    )


async def _in_one_statement(
    driver: Driver, name: str, node: str, results: list[Finished], done: Sequence[DoneRun]
) -> list[Finished]:
    (answer,) = await driver.statement(name, node, Rows(done), repeatable=True)
    if answer["ids"] is None:
        return []
    gone = set(answer["ids"])
    return [result for result in results if result.run.id not in gone]


class _NotAll(Exception):
    """One of them is not ours, or was recorded before: nothing of this transaction stays, all go the long way."""


class _Each:
    def __init__(self, name: str, node: str, results: Sequence[Finished], done: Sequence[DoneRun]) -> None:
        self._name = name
        self._node = node
        self._results = results
        self._done = done

    async def write(self, tx: Transaction) -> None:
        node, results = self._node, self._results
        if await tx.execute_each(self._name, self._done, node) < len(self._done):
            raise _NotAll
        ended = [run.job_id for result in results if not (run := result.run).recurring and run.kind in FIRINGS]
        recurring = [result for result in results if result.run.recurring]
        if recurring:  # a job may have become a one-off meanwhile: its row knows
            ended += firings_of_one_offs(await tx.rows("runs_by_id", [result.run.id for result in recurring]))
            await tx.execute("add_stats", Rows(stats_rows(item_of(node, result) for result in recurring)))
        await tx.execute("delete_runs", [result.run.id for result in results])
        await note_endings(tx, ended, max(result.finished_at for result in results))


def item_of(node: str, result: Finished) -> Item:
    run = result.run
    return Item(
        id=run.id,
        token=run.token,
        node=node,
        tenant=run.tenant,
        job_id=run.job_id,
        version=run.version,
        slot=run.slot,
        kind=run.kind,
        recurring=run.recurring,
        attempts=run.attempts,
        outcome=result.outcome,
        decision=result.decision,
        started_at=result.started_at,
        finished_at=result.finished_at,
        lateness_ms=result.lateness_ms,
        duration_ms=result.duration_ms,
        log=result.log,
        end=_end_of_try(run, result.decision) if run.spec.policy.completion == "callback" else None,
        chained=run.spec if run.spec.chained else None,
        target=run.spec.target,
        job=run.spec,
    )


def _end_of_try(run: ClaimedRun, decision: Decision) -> EndOfTry | None:
    """None: it counted as none. What was not accepted may still be completed, by a callback for that try."""
    return EndOfTry(try_number=run.tries + 1) if decision.tries > run.tries else None
