"""One page of a list of runs, from up to five places: pending, running, and ended ones by what became of them.

Filters without an index look at as many runs of each place as a page may; the page then ends where the first of them
has stopped to look, and the next one goes on there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onthedot.model.run import RunView
from onthedot.store.driver import Row, Transaction
from onthedot.store.runs.listed import ListedRun, listed_run
from onthedot.store.runs.requirements import live_offers
from onthedot.store.runs.run_filter import RunFilter, has_narrow_filters, passes
from onthedot.store.runs.views import asks_for_nodes, history_view, live_view

__all__ = ["LAST", "LAST_ID", "SCANNED_RUNS", "RunPage", "live_views"]

FIRST, LAST, LAST_ID = -(2**62), 2**63 - 1, "~"  # before, after and above anything there is

SCANNED_RUNS = 2000
"""Runs that one page looks at, in each place, to find those that pass filters without an index."""

_OF_ALL = ("list_history", "find_history", "reach_history", "by.not_done")
_OF_JOB = ("list_history_of_job", "find_history_of_job", "reach_history_of_job", "by.job_not_done")
Position = tuple[int, str]
_Found = dict[str, ListedRun]


async def live_views(tx: Transaction, rows: Sequence[Row], now: int) -> list[RunView]:
    """Whether there is a node for them is found by one look at the nodes, and only if one of them may wait for that."""
    nodes = await live_offers(tx) if any(asks_for_nodes(row, now) for row in rows) else []
    return [live_view(row, now, nodes=nodes) for row in rows]


class RunPage:
    """By run: what moved from live to history in between is there once."""

    def __init__(self, tx: Transaction, tenant: int, wanted: RunFilter, place: Position) -> None:
        self._tx = tx
        self._tenant = tenant
        self._wanted = wanted
        self._narrow = has_narrow_filters(wanted)
        self._limit = wanted.limit + 1
        low = FIRST if wanted.since is None else wanted.since
        high = min(LAST if wanted.until is None else wanted.until, place[0])  # SQLite starts here, not at the place
        self._bounds: list[Any] = [low, high, *place]
        self._found: _Found = {}
        self._ends: list[Position] = []

    async def read(self) -> tuple[list[ListedRun], Position | None]:
        """The newest, one more than the page has if there are more; and where it has stopped to look, if it has."""
        status = self._wanted.status
        if status in (None, "PENDING", "EXECUTING"):
            now = await self._tx.now()
            if status != "EXECUTING":
                await self._pending(now)
            await self._running(now)
        if status == "DONE":
            await self._ended("only.done")
        elif status is None and self._wanted.q is None:
            await self._ended()
        elif status not in ("PENDING", "EXECUTING"):
            # what is done has no error: the others are found by their index
            for each in ("failed", "cancelled", "skipped") if status is None else (status.lower(),):
                await self._ended(status=each)
        end = max(self._ends, default=None)
        found = sorted(self._found.values(), key=lambda each: each.position, reverse=True)
        return [each for each in found if end is None or each.position >= end], end

    async def _pending(self, now: int) -> None:
        low, high, *place = self._bounds
        due = LAST if self._wanted.status == "PENDING" else now
        args = [self._tenant, low, min(high, due), *place, due, self._live_limit]
        if self._wanted.job_id is None:
            rows = await self._tx.rows("list_pending", *args)
        else:
            rows = await self._tx.rows("list_pending_of_job", *args, self._wanted.job_id)
        self._keep_live(rows, await live_views(self._tx, rows, now), now)

    async def _running(self, now: int) -> None:
        args = [self._tenant, *self._bounds, self._wanted.status, self._live_limit, now]
        if self._wanted.job_id is None:
            rows = await self._tx.rows("list_running", *args)
        else:
            rows = await self._tx.rows("list_running_of_job", *args, self._wanted.job_id)
        self._keep_live(rows, await live_views(self._tx, rows, now), now)

    @property
    def _live_limit(self) -> int:
        return SCANNED_RUNS if self._narrow else self._limit

    def _keep_live(self, rows: Sequence[Row], views: Sequence[RunView], now: int) -> None:
        for row, view in zip(rows, views, strict=True):
            held_ahead = row["state"] == "running" and row["due_at"] > now and not row["begun_at"]
            if (held_ahead and self._wanted.status is None) or not passes(self._wanted, row, view, now):
                continue
            self._found[view.id] = listed_run(row, view)
        if self._narrow and len(rows) == SCANNED_RUNS:
            self._ends.append((rows[-1]["slot"], rows[-1]["id"]))

    async def _ended(self, *only: str, status: str | None = None) -> None:
        narrow = [(name, []) for name in only] + self._narrow_filters()
        args, listed, found, reach, index = [self._tenant, *self._bounds], *_OF_ALL
        if self._wanted.job_id is not None:
            args, listed, found, reach, index = [*args, self._wanted.job_id], *_OF_JOB
        inside = "+where.all_of_history" if status is None else f"+where.not_done+{index}"
        of_status = [] if status is None else [status]
        name, given = listed + inside, [*args, self._limit, *of_status]
        if narrow:
            end = await self._tx.row(reach + inside, *args, SCANNED_RUNS - 1, *of_status)
            if end is not None:
                self._ends.append((end["slot"], end["id"]))
            name = found + inside + "".join(f"+{part}" for part, _ in narrow)
            values = [value for _, values in narrow for value in values]
            given = [*args, self._limit, SCANNED_RUNS, *of_status, *values]
        for row in await self._tx.rows(name, *given):
            self._found[row["id"]] = listed_run(row, history_view(row))

    def _narrow_filters(self) -> list[tuple[str, list[Any]]]:
        wanted = self._wanted
        parts: list[tuple[str, list[Any]]] = []
        if wanted.q is not None:
            parts.append(("only.error", [wanted.q]))
        if wanted.node is not None:
            parts.append(("only.node", [wanted.node]))
        if wanted.kind is not None:
            parts.append(("only.kind", [wanted.kind]))
        if wanted.late is not None:
            parts.append(("only.late" if wanted.late else "only.not_late", []))
        return parts
