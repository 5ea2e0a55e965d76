"""What a node is told about the runs it holds, and what it gives back.

An order stays in the run's row until the run ends or goes back: the node reads it again and again, so none can be lost.
`runs.orders` is 'recall' (give it back if it has not begun), 'cancel' (a user wants it stopped), or 'replace <run>' (a
newer one takes its lane; a node of an older version takes this for a cancel, and stops it as well).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from onthedot.errors import NoRoom
from onthedot.model.job import JobRecord
from onthedot.plan import SLACK_MS, laned, ready_at, timetable_of
from onthedot.store.driver import Driver, Row, Transaction
from onthedot.store.runs.groups import settle_groups
from onthedot.store.runs.row import job_of
from onthedot.store.runs.spec_cache import SpecCache
from onthedot.store.runs.terminate import Ending, end_runs, release_lanes
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = [
    "CANCEL",
    "Order",
    "OwnedRun",
    "PendingAgain",
    "PolledOrders",
    "RunOrders",
    "StopOrder",
    "is_stop",
    "order_of",
    "order_stop",
    "put_back",
    "replace_by",
    "why_stopped",
]

CANCEL: Literal["cancel"] = "cancel"
_REPLACE = "replace "


def replace_by(run_id: str) -> str:
    return _REPLACE + run_id


def _replaced_by(orders: str | None) -> str | None:
    """The newer run; None: it was not that."""
    return orders.removeprefix(_REPLACE) if orders is not None and orders.startswith(_REPLACE) else None


def is_stop(orders: str | None) -> bool:
    return orders == CANCEL or _replaced_by(orders) is not None


def why_stopped(orders: str | None) -> str:
    """The reason that the ledger keeps."""
    return "cancelled" if _replaced_by(orders) is None else "replaced"


class StopOrder(Shape, frozen=True):
    id: str
    orders: str


class OwnedRun(Shape, frozen=True):
    """A run with its whole fence."""

    id: str
    token: int
    node: str


class PendingAgain(Shape, frozen=True, kw_only=True):
    id: str
    ready_at: int
    tries: int
    losses: int
    attempts: str | None
    cursor: bool  # a one-off's run that nobody began is its cursor again: an edit moves it


async def order_stop(tx: Transaction, orders: Sequence[StopOrder]) -> None:
    """These runs shall stop, if they run. What a user cancelled stays cancelled, and is not replaced."""
    if orders:
        await tx.execute("order_stop", Rows(orders))


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """cancel: stop it, record it as cancelled. recall: give it back if it has not begun. gone: not yours any more."""

    run_id: str
    token: int
    what: Literal["cancel", "recall", "gone"]
    by: str | None = None  # the newer run that takes its lane, if that is why it shall stop


class PolledOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What a node asks for between two beats."""

    now_us: int  # the database's time; not a transaction's, whose commit and disk come after its stamp
    orders: list[Order]


class RunOrders(Topic):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._present = SpecCache()

    async def poll_orders(self, node: str) -> PolledOrders:
        """The time, and what this node shall do with runs it holds."""
        rows = await self.driver.read(lambda tx: tx.rows("news_of", node), watched=True)
        orders = [order_of(row) for row in rows if row["id"]]
        return PolledOrders(now_us=rows[0]["now_us"], orders=orders)

    async def held(self, node: str) -> list[tuple[str, int]]:
        """Which runs are this node's, with their tokens: for a node that is not sure what a claim brought."""

        async def body(tx: Transaction) -> list[tuple[str, int]]:
            return [(row["id"], row["token"]) for row in await tx.rows("held_by", node)]

        return await self.driver.read(body, watched=True)

    async def give_back(self, node: str, fences: Sequence[tuple[str, int]]) -> None:
        """Runs that this node will not send after all are pending again, with the same token, no try counted; or they
        end here, if their job is gone or paused, or its schedule has that slot no more."""
        if fences:
            await self.driver.transact_slow(lambda tx: put_back(tx, self._present, node, fences))


async def put_back(
    tx: Transaction, present: SpecCache, node: str, fences: Sequence[tuple[str, int]]
) -> list[PendingAgain]:
    """Those that are pending again; the others have ended, or were not this node's."""
    job_ids = sorted({job_of(run_id) for run_id, _ in fences})
    await tx.rows("lock_jobs", job_ids)  # before the runs, like every verb: and then nothing can change
    jobs = await present.read(tx, job_ids)
    held = await tx.rows("finish_lock", Rows([OwnedRun(run_id, token, node) for run_id, token in sorted(fences)]))
    now = await tx.now()
    frozen = await tx.row("current_freeze") is not None
    endings, back = _decide(held, jobs, now, tx.lookahead, frozen=frozen)
    if endings:
        await end_runs(tx, endings, settle=False)
    if back:
        await tx.execute("finish_retry", Rows(back))
    await release_lanes(tx, held)
    await settle_groups(tx, held)
    return back


def order_of(row: Row) -> Order:
    by = _replaced_by(row["orders"])
    return Order(run_id=row["id"], token=row["token"], what=CANCEL if by is not None else row["orders"], by=by)


def _decide(
    held: Iterable[Row], jobs: dict[int, JobRecord], now: int, lookahead: int, *, frozen: bool
) -> tuple[list[Ending], list[PendingAgain]]:
    endings, back = [], []
    for row in held:
        job = jobs.get(row["job_id"])
        status, reason = _end_of(row, job, now + lookahead + SLACK_MS, frozen=frozen)
        if status is not None:
            endings.append(Ending(id=row["id"], status=status, reason=reason, finished_at=now))
        elif job is not None:
            back.append(_back(row, job, lookahead))
    return endings, back


def _end_of(row: Row, job: JobRecord | None, soon: int, *, frozen: bool) -> tuple[str | None, str | None]:
    """How it ends and why, if it does. Only a slot's own first firing can come to nothing; what was tried before, or
    asked for by hand, goes on. A slot later than `soon` was taken while the clock was ahead: nobody knows yet whether
    the job will be paused then."""
    if job is None:
        return "cancelled", "deleted"
    if is_stop(row["orders"]):  # the node had not read it yet: giving back must not undo it
        return "cancelled", why_stopped(row["orders"])
    if row["kind"] != "scheduled" or row["tries"] or row["losses"]:
        return None, None
    if not _is_slot(job, row["slot"]):
        return "cancelled", "rescheduled"
    if (frozen or job.state == "paused") and not job.spec.schedule.one_off and row["slot"] <= soon:
        return "skipped", "paused"
    return None, None


def _is_slot(job: JobRecord, slot: int) -> bool:
    try:
        return timetable_of(job.spec, job.anchor_at).is_slot(slot)
    except NoRoom:  # not the schedule's fault
        raise
    except Exception:  # quarantined: what was planned before stands
        return True


def _back(row: Row, job: JobRecord, lookahead: int) -> PendingAgain:
    begun = bool(row["tries"] or row["losses"])
    return PendingAgain(
        id=row["id"],
        ready_at=ready_at(row["due_at"], lane=laned(job.spec.policy), lookahead=lookahead),
        tries=row["tries"],
        losses=row["losses"],
        attempts=row["attempts"],
        cursor=job.spec.schedule.one_off and row["kind"] == "scheduled" and not begun,
    )
