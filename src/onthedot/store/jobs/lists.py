"""Lists of jobs: any set of filters, one page at a time, each driven by an index and bounded in what it looks at."""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.model.instant import NEVER
from onthedot.model.job import JobView
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.job_filter import JobFilter, asked_of, check_words
from onthedot.store.jobs.list_statements import FEW, drive_of, noted_for, position_in, reach_for, rest_of, statement_for
from onthedot.store.jobs.views import listed_views
from onthedot.store.paging import Page, check_limit, seal_cursor, within_bytes
from onthedot.store.queries import PAGE_BYTES
from onthedot.store.topic import Topic

__all__ = ["JobLists"]


class JobLists(Topic):
    async def list_jobs(self, tenant: int, wanted: JobFilter) -> Page[JobView]:
        """One page of jobs that pass all the filters. It may be short, or empty, and still have a next one: then it has
        looked at as many jobs as a page may, or holds as much as one may."""
        check_limit(wanted.limit)
        check_words(wanted)
        return await self._job_page(tenant, wanted, PAGE_BYTES)

    async def _job_page(self, tenant: int, wanted: JobFilter, room: int) -> Page[JobView]:
        """`room`: bytes of specs that the page may still take."""
        drive = drive_of(wanted)
        few = drive == "next" and wanted.tag is not None and await self._few_have(tenant, wanted.tag)

        async def body(tx: Transaction) -> tuple[list[JobView], list[Row], bool, tuple[Any, ...] | None]:
            rows, reach = await _read(tx, tenant, wanted, few=few)
            shown = rows[: wanted.limit]
            shown = shown[: within_bytes((row["spec_bytes"] for row in shown), room)]
            return await listed_views(tx, tenant, shown), shown, len(rows) > len(shown), reach

        items, shown, cut, reach = await self.driver.read(body)
        page = Page(items=items, next=None)
        if cut:
            return _going_on(page, wanted, position_in(drive, shown[-1]))
        if reach is not None:
            return _going_on(page, wanted, reach)
        rest = rest_of(wanted)
        if rest is None:
            return page
        page = _going_on(page, wanted, rest)
        left, room = wanted.limit - len(shown), room - sum(row["spec_bytes"] for row in shown)
        if not left or room <= 0:
            return page
        more = await self._job_page(tenant, msgspec.structs.replace(wanted, limit=left, cursor=page.next), room)
        return Page(items=[*page.items, *more.items], next=more.next)

    async def _few_have(self, tenant: int, tag: str) -> bool:
        row = await self.driver.read(lambda tx: tx.row("count_tagged", tenant, tag, FEW + 1))
        return row is not None and row["n"] <= FEW


async def _read(
    tx: Transaction, tenant: int, wanted: JobFilter, *, few: bool
) -> tuple[list[Row], tuple[Any, ...] | None]:
    """One more than the page holds, and the position of the last job that was looked at, if there are others behind it.
    By state the ended ones are found where their rows say so, and by the notes of those whose rows do not yet; the
    notes first, so that what is closed in between is found twice and not missed."""
    reach = await _reach(tx, tenant, wanted)
    found: dict[int, Row] = {}
    if drive_of(wanted) == "newest" and _only_ended(wanted):
        name, args = noted_for(tenant, wanted, reach=reach)
        found = {row["id"]: row for row in await tx.rows(name, *args)}
    name, args = statement_for(tenant, wanted, few=few, reach=reach)
    rows = await tx.rows(name, *args)
    if not found:
        return list(rows), reach
    found |= {row["id"]: row for row in rows}
    return [found[job_id] for job_id in sorted(found, reverse=True)][: wanted.limit + 1], reach


def _only_ended(wanted: JobFilter) -> bool:
    if wanted.status is None:
        return wanted.ended is True
    return wanted.status == "ended" and wanted.ended is not False


async def _reach(tx: Transaction, tenant: int, wanted: JobFilter) -> tuple[Any, ...] | None:
    asked = reach_for(tenant, wanted)
    row = None if asked is None else await tx.row(asked[0], *asked[1])
    if row is None:
        return None
    end = position_in(drive_of(wanted), row)
    return (end[0], NEVER) if drive_of(wanted) == "matching" else end  # all that have this text were looked at


def _going_on(page: Page[JobView], wanted: JobFilter, position: tuple[Any, ...]) -> Page[JobView]:
    return Page(items=page.items, next=seal_cursor(asked_of(wanted), *position))
