"""begin and finish: what is sent is recorded first, what has ended is recorded last. Fenced by (id, node, token)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.store.runs.finish_batch import FinishBatch, FinishReport
from onthedot.store.runs.finish_fast import Finished, is_unusual, item_of, record_done, went_well
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = ["FinishReport", "Finished", "Finishes"]


class Fence(Shape, frozen=True):
    """A run of the node that asks."""

    id: str
    token: int


class Finishes(Topic):
    async def begin(self, node: str, fences: Sequence[tuple[str, int]]) -> set[str]:
        """Which of these at-most-once runs may be sent: they are recorded as sent, before they are."""
        if not fences:
            return set()
        asked = Rows([Fence(run_id, token) for run_id, token in sorted(fences)])
        rows = await self.driver.statement("begin_runs", node, asked, repeatable=True)
        return {row["id"] for row in rows}

    async def finish(self, node: str, results: Sequence[Finished]) -> FinishReport:
        """Ended attempts, one of each run, enter the ledger or wait for their next try; what is no longer ours is
        refused.

        What went well is written first, in one statement. What is left of it (not ours, recorded before) and all the
        rest goes the long way, in a transaction after: asked again because the answer was lost, the first are repeats.
        """
        good = [result for result in results if went_well(result)]
        alerting = self.driver.queries.alerting
        if alerting.rules:
            good = [result for result in good if not is_unusual(result, alerting)]
        rest = await record_done(self.driver, node, good) if good else []
        recorded = len(good) - len(rest)
        if len(good) < len(results):
            fast = {id(result) for result in good}
            rest = [*rest, *(result for result in results if id(result) not in fast)]
        if not rest:
            return FinishReport(recorded=recorded, refused=[], repeated=[])
        batch = FinishBatch([item_of(node, result) for result in rest], dialect=self.driver.dialect)
        await self.driver.transact(batch.attempt, repeatable=True)
        batch.announce()
        report = batch.report()
        return msgspec.structs.replace(report, recorded=recorded + report.recorded)
