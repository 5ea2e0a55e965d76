"""Runs as people see them: live and history as one list, newest slot first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from onthedot.errors import Invalid, NotFound
from onthedot.model.run import RecentRun, RunView
from onthedot.store.driver import Transaction
from onthedot.store.paging import Page, check_limit, open_cursor, seal_cursor
from onthedot.store.queries import LOG_LIMIT
from onthedot.store.runs.listed import that_fit, with_params
from onthedot.store.runs.row import parse_run_id
from onthedot.store.runs.run_filter import RunFilter, asked_of_runs
from onthedot.store.runs.run_page import LAST, LAST_ID, RunPage, live_views
from onthedot.store.runs.views import history_view, recent_run, refused_result
from onthedot.store.topic import Topic

__all__ = ["RunLists", "no_run", "read_run"]

T = TypeVar("T")

RECENT, RECENT_JOBS = 20, 100


class RunLists(Topic):
    async def list_runs(self, tenant: int, filter: RunFilter) -> Page[RunView]:  # noqa: A002
        """Newest first. What is not yet due comes only when PENDING is asked for. A page may be short, or empty, and
        still have a next one: then it has looked at as many runs as a page may, or holds as much as one may."""
        limit = check_limit(filter.limit)
        asked = asked_of_runs(tenant, filter)
        place = (LAST, LAST_ID) if filter.cursor is None else open_cursor(filter.cursor, asked, (int, str))

        async def body(tx: Transaction) -> Page[RunView]:
            rows, end = await RunPage(tx, tenant, filter, (place[0], place[1])).read()
            shown = that_fit(rows, limit)
            stop = shown[-1].position if len(rows) > len(shown) else end
            more = None if stop is None else seal_cursor(asked, *stop)
            return Page(items=await with_params(tx, shown), next=more)

        return await self.driver.read(body, snapshot=True)

    async def recent_runs(self, tenant: int, job_ids: Sequence[int], limit: int = RECENT) -> dict[int, list[RecentRun]]:
        """The last runs that ended of each of these jobs, up to 100 of them, the newest slot first."""
        if len(job_ids) > RECENT_JOBS:
            raise Invalid.one("job_ids", "too many", given=len(job_ids), accepted=f"up to {RECENT_JOBS}")
        found: dict[int, list[RecentRun]] = {job_id: [] for job_id in job_ids}
        if found:
            rows = await self.driver.read(lambda tx: tx.rows("recent_runs", tenant, list(found), limit))
            for row in rows:
                found[row["job_id"]].append(recent_run(row))
        return found

    async def get_run(self, tenant: int, run_id: str) -> RunView:
        async def body(tx: Transaction) -> RunView:
            run = await read_run(tx, tenant, run_id)
            started = [row["run_id"] for row in await tx.rows("followers_of", tenant, run_id)]
            refused = [refused_result(row) for row in await tx.rows("refused_of", tenant, run_id)]
            return msgspec.structs.replace(run, followers=started, refused=refused)

        return await self._find(body)

    async def run_at_present(self, tenant: int, job_id: int) -> RunView | None:
        """The run of a job that executes, else the next one; None: nothing is to come."""

        async def body(tx: Transaction) -> RunView | None:
            row = await tx.row("run_at_present", tenant, job_id)
            return None if row is None else (await live_views(tx, [row], row["now"]))[0]

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

        return await self._find(body)

    async def _find(self, body: Callable[[Transaction], Awaitable[T]]) -> T:
        """A run that ends between two looks is found by the second. One that goes back (its job was deleted and is
        undeleted) would be found by none: before anybody is told that there is none, both look at the same moment."""
        try:
            return await self.driver.read(body)
        except NotFound:
            return await self.driver.read(body, snapshot=True)


async def read_run(tx: Transaction, tenant: int, run_id: str) -> RunView:
    """Live first: a run that ends between the two looks is found by the second."""
    _, slot = parse_run_id(run_id)
    row = await tx.row("get_live", tenant, run_id)
    if row is not None:
        return (await live_views(tx, [row], row["now"]))[0]
    row = await tx.row("get_ended", tenant, run_id, slot)
    if row is None:
        raise no_run(run_id)
    return history_view(row, full=True)


def no_run(run_id: str, why: str | None = None) -> NotFound:
    return NotFound(f"run {run_id[:100]!r} not found" + (f": {why}" if why else ""))
