"""begin and finish: what is sent is recorded first, what has ended is recorded last. Fenced by (id, node, token)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.model.run import ClaimedRun, Outcome
from onthedot.plan import Decision
from onthedot.store.driver import Rows, Transaction
from onthedot.store.finish_batch import FinishBatch, FinishReport, Item, StaleFence
from onthedot.store.topic import Topic

__all__ = ["FinishReport", "Finished", "Finishes", "write_finishes"]


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


class Finishes(Topic):
    async def begin(self, node: str, fences: Sequence[tuple[str, int]]) -> set[str]:
        """Which of these at-most-once runs may be sent: they are recorded as sent, before they are."""
        if not fences:
            return set()
        rows = Rows(sorted(fences))

        async def body(tx: Transaction) -> set[str]:
            return {row["id"] for row in await tx.rows("begin_runs", node, rows)}

        return await self.driver.write(body)

    async def finish(self, node: str, results: Sequence[Finished]) -> FinishReport:
        """Ended attempts enter the ledger or wait for their next try; what is no longer ours is refused."""
        if not results:
            return FinishReport(recorded=0, refused=[], repeated=[])
        items = sorted((_item(node, result) for result in results), key=lambda item: item.id)
        batch = await write_finishes(self, items)
        return batch.report()


async def write_finishes(topic: Topic, items: Sequence[Item]) -> FinishBatch:
    """Write a batch in one transaction. Jobs are ended before their runs are touched, because verbs lock jobs first; if
    a run then turns out not to be ours any more, all is done again without ending that job. Refusals are rare."""
    stale: set[str] = set()
    while True:
        batch = FinishBatch(items, dialect=topic.driver.dialect, stale=stale)
        try:
            await topic.driver.write(batch.attempt)
        except StaleFence as fence:
            stale |= fence.ids
            continue
        batch.announce()
        return batch


def _item(node: str, result: Finished) -> Item:
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
    )
