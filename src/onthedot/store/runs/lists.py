"""Runs as people see them: live and history as one list, newest slot first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from onthedot.errors import NotFound
from onthedot.model.run import RunStatus, RunView
from onthedot.store.driver import Row, Transaction
from onthedot.store.paging import Page, check_limit, fingerprint, open_cursor, seal_cursor
from onthedot.store.queries import LOG_LIMIT
from onthedot.store.runs.requirements import live_offers
from onthedot.store.runs.row import parse_run_id
from onthedot.store.runs.views import asks_for_labels, history_view, live_view
from onthedot.store.topic import Topic

__all__ = ["RunFilter", "RunLists", "no_run", "read_run"]

_FIRST, _LAST, _LAST_ID = -(2**62), 2**63 - 1, "~"  # before, after and above anything there is


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs. `since` and `until` bound `scheduled_for`, in ms, both included."""

    job_id: int | None = None
    status: RunStatus | None = None
    since: int | None = None
    until: int | None = None
    limit: int = 50
    cursor: str | None = None


class RunLists(Topic):
    async def list_runs(self, tenant: int, filter: RunFilter) -> Page[RunView]:  # noqa: A002
        """Newest first. What is not yet due comes only when PENDING is asked for."""
        limit = check_limit(filter.limit)
        asked = fingerprint("runs", tenant, filter.job_id, filter.status, filter.since, filter.until)
        place: list[Any] = [_LAST, _LAST_ID]
        if filter.cursor is not None:
            place = open_cursor(filter.cursor, asked, (int, str))
        low = _FIRST if filter.since is None else filter.since
        high = min(_LAST if filter.until is None else filter.until, place[0])  # SQLite starts here, not at (slot, id)

        async def body(tx: Transaction) -> Page[RunView]:
            page = _Page(tx, tenant, filter, [low, high, *place], limit + 1)
            found = await page.read()
            rows = sorted(found.values(), key=lambda each: each[0], reverse=True)
            more = seal_cursor(asked, *rows[limit - 1][0]) if len(rows) > limit else None
            return Page(items=[view for _, view in rows[:limit]], next=more)

        return await self.driver.read(body)

    async def get_run(self, tenant: int, run_id: str) -> RunView:
        async def body(tx: Transaction) -> RunView:
            run = await read_run(tx, tenant, run_id)
            started = [row["run_id"] for row in await tx.rows("followers_of", tenant, run_id)]
            return msgspec.structs.replace(run, followers=started)

        return await self.driver.read(body)

    async def run_at_present(self, tenant: int, job_id: int) -> RunView | None:
        """The run of a job that executes, else the next one; None: nothing is to come."""

        async def body(tx: Transaction) -> RunView | None:
            row = await tx.row("run_at_present", tenant, job_id)
            return None if row is None else (await _live_views(tx, [row], row["now"]))[0]

        return await self.driver.read(body)

    async def run_logs(self, tenant: int, run_id: str) -> str | None:
        """The last 64 KB that the run's attempts printed, the one that runs now too; None: nothing."""

        async def body(tx: Transaction) -> str | None:
            parse_run_id(run_id)
            # the live one first: what ends between the two looks is found by the second
            live = await tx.row("get_live_log", tenant, run_id)
            ended = await tx.row("get_log", tenant, run_id)
            if live is None and ended is None:
                await read_run(tx, tenant, run_id)  # NotFound, if there is no such run either
                return None
            return "".join(str(row["log"]) for row in (ended, live) if row is not None)[-LOG_LIMIT:]

        return await self.driver.read(body)

    async def list_dead(
        self, tenant: int, *, job_id: int | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[RunView]:
        """Dead letters that nobody has driven again yet, the last that failed first."""
        check_limit(limit)
        asked = fingerprint("dead", tenant, job_id)
        place = open_cursor(cursor, asked, (int, str)) if cursor is not None else [_LAST, _LAST_ID]
        name, args = ("list_dead+where.any_dead", []) if job_id is None else ("list_dead+where.dead_job", [job_id])

        async def body(tx: Transaction) -> Page[RunView]:
            rows = list(await tx.rows(name, tenant, *place, limit + 1, *args))
            more = None
            if len(rows) > limit:
                more = seal_cursor(asked, rows[limit - 1]["failed_at"], rows[limit - 1]["id"])
            return Page(items=[history_view(row) for row in rows[:limit]], next=more)

        return await self.driver.read(body)


async def read_run(tx: Transaction, tenant: int, run_id: str) -> RunView:
    """Live first: a run that ends between the two looks is found by the second."""
    _, slot = parse_run_id(run_id)
    row = await tx.row("get_live", tenant, run_id)
    if row is not None:
        return (await _live_views(tx, [row], row["now"], full=True))[0]
    row = await tx.row("get_ended", tenant, run_id, slot)
    if row is None:
        raise no_run(run_id)
    return history_view(row, full=True)


async def _live_views(tx: Transaction, rows: Sequence[Row], now: int, *, full: bool = False) -> list[RunView]:
    """Which labels are missing is found by a look at the nodes, and only for runs that ask for some."""
    nodes = await live_offers(tx) if any(asks_for_labels(row, now) for row in rows) else []
    return [live_view(row, now, full=full, nodes=nodes) for row in rows]


def no_run(run_id: str, why: str | None = None) -> NotFound:
    return NotFound(f"run {run_id[:100]!r} not found" + (f": {why}" if why else ""))


_Found = dict[str, tuple[tuple[int, str], RunView]]


class _Page:
    """One page from each of the three places, by run: what moved from live to history in between is there once."""

    def __init__(self, tx: Transaction, tenant: int, wanted: RunFilter, bounds: list[Any], limit: int) -> None:
        self._tx = tx
        self._tenant = tenant
        self._wanted = wanted
        self._bounds = bounds
        self._limit = limit

    async def read(self) -> _Found:
        status, found = self._wanted.status, {}
        if status in (None, "PENDING", "EXECUTING"):
            now = await self._tx.now()
            if status != "EXECUTING":
                found.update(await self._pending(now))
            found.update(await self._running(now))
        if status not in ("PENDING", "EXECUTING"):
            found.update(await self._ended())
        return found

    async def _pending(self, now: int) -> _Found:
        low, high, *place = self._bounds
        due = _LAST if self._wanted.status == "PENDING" else now
        args = [self._tenant, low, min(high, due), *place, due, self._limit]
        if self._wanted.job_id is None:
            rows = await self._tx.rows("list_pending", *args)
        else:
            rows = await self._tx.rows("list_pending_of_job", *args, self._wanted.job_id)
        views = await _live_views(self._tx, rows, now)
        return {row["id"]: ((row["slot"], row["id"]), view) for row, view in zip(rows, views, strict=True)}

    async def _running(self, now: int) -> _Found:
        args = [self._tenant, *self._bounds, self._wanted.status, self._limit, now]
        if self._wanted.job_id is None:
            rows = await self._tx.rows("list_running", *args)
        else:
            rows = await self._tx.rows("list_running_of_job", *args, self._wanted.job_id)
        shown = [row for row in rows if self._wanted.status is not None or row["due_at"] <= now or row["begun_at"]]
        return {row["id"]: ((row["slot"], row["id"]), live_view(row, now)) for row in shown}

    async def _ended(self) -> _Found:
        args: list[Any] = [self._tenant, *self._bounds, self._limit]
        name, status = "list_history", self._wanted.status
        if self._wanted.job_id is not None:
            name, args = "list_history_of_job", [*args, self._wanted.job_id]
        if status is None:
            name += "+where.all_of_history"
        elif status == "DONE":
            name += "+where.done"
        else:
            by = "by.not_done" if self._wanted.job_id is None else "by.job_not_done"
            name, args = f"{name}+where.not_done+{by}", [*args, status.lower()]
        rows = await self._tx.rows(name, *args)
        return {row["id"]: ((row["slot"], row["id"]), history_view(row)) for row in rows}
