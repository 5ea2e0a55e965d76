"""Open runs: their work goes on outside (a container, a job of a cluster), and no node has them.

A run whose kind survives its node says what it is about to start (`begin_work`). From then on the node's end does not
end it: detached by a node that stops, or found with a node that is lost, it is open until another node that reaches its
place adopts it. It keeps its lane, its tries and losses, its start and its orders; that its node is gone is no loss.
When its time is up it is adopted to be stopped, and if nobody reaches its place it ends without that.

`runs.state` stays 'running', `node` is null, `open` is 'adopt'. Which kinds survive is for the engine to know: here it
is the runs that have `work`. Those that wait for a callback are open, too: see `callbacks`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

from onthedot.model.decoding import encode_json
from onthedot.model.job import JobSpec
from onthedot.model.run import NO_JOB, ClaimedRun, Outcome
from onthedot.model.work import Work
from onthedot.plan import Decision, Done, on_outcome, overdue
from onthedot.store.driver import Driver, Row, Transaction
from onthedot.store.runs.callbacks import overdue_callback
from onthedot.store.runs.checkins import NO_SILENCE, end_silence, waits_for_ping
from onthedot.store.runs.finish_batch import FinishBatch
from onthedot.store.runs.finish_rows import Item
from onthedot.store.runs.open_rows import ended_item, run_of, spec_of, work_of
from onthedot.store.runs.orders import Order, is_stop, order_of, why_stopped
from onthedot.store.runs.retry_limits import with_retry_limits
from onthedot.store.runs.row import CALLBACK, ClaimedRow, claimed_run
from onthedot.store.runs.spec_cache import SpecCache
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = ["OVERDUE", "Adopted", "OpenRun", "OpenRuns", "StartedWork", "end_overdue", "open_runs"]

OVERDUE = 1000  # ended in one transaction

_decode = msgspec.json.Decoder(Work).decode


class StartedWork(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of this node is about to start. `capability`: what a node must offer to adopt it, its place in it;
    `within_ms`: how long it may take, None: for ever."""

    run_id: str
    token: int
    work: Work
    capability: str
    within_ms: int | None


class Adopted(msgspec.Struct, frozen=True, kw_only=True):
    """An open run that is this node's now. `left_ms`: until its time is up; `order`: what users wanted meanwhile."""

    run: ClaimedRun
    work: Work
    left_ms: int | None
    order: Order | None


class BegunWork(Shape, frozen=True, kw_only=True):
    id: str
    token: int
    work: str
    requires: str
    within_ms: int | None


class OpenRun(Shape, frozen=True, kw_only=True):
    """A run that shall be open, with its fence. `left_ms` None: until the time that was said when it began."""

    id: str
    token: int
    node: str
    left_ms: int | None = None


class OpenRuns(Topic):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._adopted = SpecCache()

    async def begin_work(self, node: str, started: Sequence[StartedWork]) -> set[str]:
        """Which of these runs may start their work: it is recorded before it is started."""
        if not started:
            return set()
        rows = [
            BegunWork(
                id=each.run_id,
                token=each.token,
                work=encode_json(each.work).decode(),
                requires=each.capability,
                within_ms=each.within_ms,
            )
            for each in sorted(started, key=lambda each: each.run_id)
        ]
        found = await self.driver.statement("begin_work", node, Rows(rows), repeatable=True)
        return {row["id"] for row in found}

    async def detach(self, node: str, runs: Sequence[tuple[str, int, int | None]]) -> set[str]:
        """These runs (id, token, ms until their time is up) go on without this node. Which of them do: not those that
        are not ours any more, nor those that never said what they started."""
        ordered = [
            OpenRun(id=run_id, token=token, node=node, left_ms=left_ms)
            for run_id, token, left_ms in sorted(runs, key=lambda run: run[0])
        ]
        return await open_runs(self.driver, ordered)

    async def adopt(self, node: str, capabilities: Sequence[str], *, level: int, limit: int) -> list[Adopted]:
        """Open runs that can be reached from here become this node's. To be asked before anything new is claimed."""
        if not capabilities or limit <= 0:
            return []

        async def body(tx: Transaction) -> list[Adopted]:
            rows = await tx.rows("adopt_runs", node, list(capabilities), level, limit)
            specs = await self._adopted.read_specs(tx, (row["job_id"] for row in rows))
            found = [_adopted(row, specs.get(row["job_id"])) for row in rows]
            runs = await with_retry_limits(tx, self._adopted, [each.run for each in found], {})
            return [msgspec.structs.replace(each, run=run) for each, run in zip(found, runs, strict=True)]

        return await self.driver.transact(body, repeatable=True)

    async def living(self, tries: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        """Which of these (run, try) are not over: what they started is not to be removed."""
        if not tries:
            return set()
        rows = await self.driver.read(lambda tx: tx.rows("tries_of", [run_id for run_id, _ in tries]))
        return {(row["id"], row["tries"] + 1) for row in rows} & set(tries)


async def open_runs(driver: Driver, runs: Sequence[OpenRun]) -> set[str]:
    if not runs:
        return set()
    return {row["id"] for row in await driver.statement("open_runs", Rows(runs), repeatable=True)}


async def end_overdue(driver: Driver) -> FinishBatch | None:
    """Open runs whose time is up end as ones that took too long: to be tried again, or dead. Those that can be adopted,
    only if nobody has reached them for a while after it. None: there are none."""
    rows = await driver.read(lambda tx: tx.rows("overdue_runs", OVERDUE), watched=True)
    if not rows:
        return None
    silent = [row for row in rows if row["open"] == CALLBACK and not is_stop(row["orders"]) and waits_for_ping(row)]
    silence = await driver.read(lambda tx: end_silence(tx, silent)) if silent else NO_SILENCE
    reported = {row["id"] for row in silent}
    items = [*silence.ended, *(_too_late(row) for row in rows if row["id"] not in reported)]
    batch = FinishBatch(items, dialect=driver.dialect)

    async def body(tx: Transaction) -> None:
        if silence.waiting:
            await tx.execute("wait_longer", Rows(silence.waiting))
        await batch.attempt(tx)

    await driver.transact(body, repeatable=True)
    batch.announce()
    if silence.missed:  # after the runs, not with them: a report locks in the other order
        await driver.statement("forget_starts", silence.missed, repeatable=True)
    return batch if items else None


def _adopted(row: Row, known: tuple[int, JobSpec] | None) -> Adopted:
    work, until = _decode(row["work"]), row["open_until"]
    version, job = known or (NO_JOB, None)
    claimed = ClaimedRow(**{name: row[name] for name in ClaimedRow.__struct_fields__})
    spec = spec_of(row, work, job)
    if job is not None and job.target != spec.target:
        work = msgspec.structs.replace(work, outdated=True)
    return Adopted(
        run=msgspec.structs.replace(claimed_run(claimed, version, spec), work=work),
        work=work,
        left_ms=None if until is None else until - row["now"],
        order=None if row["orders"] is None else order_of(row),
    )


def _too_late(row: Row) -> Item:
    if row["open"] == CALLBACK:
        return overdue_callback(dict(row))
    work = work_of(row)
    run = run_of(row, work)
    outcome, decision = _decide(run, row["orders"], row["now"])
    return ended_item(row, run, work, outcome, decision)


def _decide(run: ClaimedRun, orders: str | None, now: int) -> tuple[Outcome, Decision]:
    if is_stop(orders):
        outcome = Outcome(kind="cancelled", error="cancelled; its work may still be running")
        return outcome, Done(status="cancelled", tries=run.tries + 1, losses=run.losses, reason=why_stopped(orders))
    outcome = overdue(run.spec.policy)
    return outcome, on_outcome(run, outcome, now, random.Random(f"{run.id} {run.token}"))
