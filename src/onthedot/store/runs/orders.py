"""What a node is told about the runs it holds, and what it gives back.

An order stays in the run's row until the run ends or goes back: the node reads it again and again, so none can be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from onthedot.errors import NoRoom
from onthedot.model.job import JobRecord
from onthedot.plan import SLACK_MS, laned, ready_at, timetable_of
from onthedot.store.driver import Driver, Row, Rows, Transaction
from onthedot.store.runs.order_text import is_stop, replaced_by, why_stopped
from onthedot.store.runs.run_ids import job_of
from onthedot.store.runs.spec_cache import SpecCache
from onthedot.store.runs.terminate import Ending, end_runs, release_lanes
from onthedot.store.topic import Topic

__all__ = ["News", "Order", "RunOrders"]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """cancel: stop it, record it as cancelled. recall: give it back if it has not begun. gone: not yours any more."""

    run_id: str
    token: int
    what: Literal["cancel", "recall", "gone"]
    by: str | None = None  # the newer run that takes its lane, if that is why it shall stop


class News(msgspec.Struct, frozen=True, kw_only=True):
    """What a node asks for between two beats."""

    now_us: int  # the database's time; not a transaction's, whose commit and disk come after its stamp
    orders: list[Order]


class RunOrders(Topic):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._present = SpecCache()

    async def news(self, node: str) -> News:
        """The time, and what this node shall do with runs it holds."""
        rows = await self.driver.read(lambda tx: tx.rows("news_of", node), watched=True)
        orders = [_order(row) for row in rows if row["id"]]
        return News(now_us=rows[0]["now_us"], orders=orders)

    async def held(self, node: str) -> list[tuple[str, int]]:
        """Which runs are this node's, with their tokens: for a node that is not sure what a claim brought."""

        async def body(tx: Transaction) -> list[tuple[str, int]]:
            return [(row["id"], row["token"]) for row in await tx.rows("held_by", node)]

        return await self.driver.read(body, watched=True)

    async def give_back(self, node: str, fences: Sequence[tuple[str, int]]) -> None:
        """Runs that this node will not send after all are pending again, with the same token, no try counted; or they
        end here, if their job is gone or paused, or its schedule has that slot no more."""
        if not fences:
            return

        async def body(tx: Transaction) -> None:
            job_ids = sorted({job_of(run_id) for run_id, _ in fences})
            await tx.rows("lock_jobs", job_ids)  # before the runs, like every verb: and then nothing can change
            jobs = await self._present.read(tx, job_ids)
            held = await tx.rows("finish_lock", Rows([(run_id, token, node) for run_id, token in sorted(fences)]))
            now = await tx.now()
            endings, back = _decide(held, jobs, now, tx.lookahead)
            if endings:
                await end_runs(tx, endings, now)
            if back:
                await tx.execute("finish_retry", Rows(back))
            await release_lanes(tx, held)

        await self.driver.transact_slow(body)


def _order(row: Row) -> Order:
    by = replaced_by(row["orders"])
    return Order(run_id=row["id"], token=row["token"], what=row["orders"] if by is None else "cancel", by=by)


def _decide(
    held: Iterable[Row], jobs: dict[int, JobRecord], now: int, lookahead: int
) -> tuple[list[Ending], list[tuple[Any, ...]]]:
    endings, back = [], []
    for row in held:
        job = jobs.get(row["job_id"])
        ending = _ending(row, job, now + lookahead + SLACK_MS)
        if ending is not None:
            endings.append(ending)
        elif job is not None:
            back.append(_back(row, job, now, lookahead))
    return endings, back


def _ending(row: Row, job: JobRecord | None, soon: int) -> Ending | None:
    """Only a slot's own first firing can come to nothing; what was tried before, or asked for by hand, goes on. A slot
    later than `soon` was taken while the clock was ahead: nobody knows yet whether the job will be paused then."""
    if job is None:
        return Ending(id=row["id"], status="cancelled", reason="deleted")
    if is_stop(row["orders"]):  # the node had not read it yet: giving back must not undo it
        return Ending(id=row["id"], status="cancelled", reason=why_stopped(row["orders"]))
    if row["kind"] != "scheduled" or row["tries"] or row["losses"]:
        return None
    if not _is_slot(job, row["slot"]):
        return Ending(id=row["id"], status="cancelled", reason="rescheduled")
    if job.state == "paused" and not job.spec.schedule.one_off and row["slot"] <= soon:
        return Ending(id=row["id"], status="skipped", reason="paused")
    return None


def _is_slot(job: JobRecord, slot: int) -> bool:
    try:
        return timetable_of(job.spec, job.anchor_at).is_slot(slot)
    except NoRoom:  # not the schedule's fault
        raise
    except Exception:  # quarantined: what was planned before stands
        return True


def _back(row: Row, job: JobRecord, now: int, lookahead: int) -> tuple[Any, ...]:
    """The columns of `finish_retry`. A one-off's run that nobody began is its cursor again: an edit moves it."""
    begun = bool(row["tries"] or row["losses"])
    ready = now if begun else ready_at(row["due_at"], lane=laned(job.spec.policy), lookahead=lookahead)
    cursor = job.spec.schedule.one_off and row["kind"] == "scheduled" and not begun
    return row["id"], ready, row["tries"], row["losses"], row["attempts"], cursor
