"""Lists of jobs: any set of filters, one page at a time, each driven by an index.

What drives: `next_before`/`next_after` the indexes of cursors (ordered by next run), else `q` the two of search texts
(ordered by the text that matched), else `tag` its own, else `owner` its own, else the newest first. The other filters
narrow that down. A tag that few jobs have drives the list by next run, too, in the same order.
"""

from __future__ import annotations

import typing
from typing import Any

import msgspec

from onthedot.errors import Invalid
from onthedot.model.instant import NEVER
from onthedot.model.job import JobState, JobView
from onthedot.model.schedule import SCHEDULE_KINDS
from onthedot.model.targets.registry import target_types
from onthedot.store.driver import Row
from onthedot.store.jobs.close_one_offs import settle
from onthedot.store.jobs.rows import search_text
from onthedot.store.jobs.views import VIEW, job_view
from onthedot.store.paging import Page, check_limit, fingerprint, open_cursor, seal_cursor
from onthedot.store.topic import Topic

__all__ = ["JobFilter", "JobLists", "statement_for"]

STATES: tuple[str, ...] = typing.get_args(JobState)
NARROWED = {
    "kinds": ("kinds.state", "kinds.target", "kinds.schedule"),
    "rows": ("where.state", "where.target", "where.schedule"),
}
"""By state, target and schedule: the newest are taken of the kinds that are wanted; other lists drop what is not."""

FEW = 5000
"""Jobs with a tag, up to which the next run of each is looked up. Read by next run instead, a tag that one job in a
thousand has makes a page read a thousand times as many."""

LAST_RUN = "~"  # above the id of any run
END = "\U0010ffff"  # no text goes on with this, so every text with a prefix comes before prefix + END


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    q: str | None = None  # a prefix of key or name, in any case
    tag: str | None = None
    status: str | None = None
    target: str | None = None
    schedule: str | None = None
    owner: str | None = None
    next_before: int | None = None  # ms; the next run is before this
    next_after: int | None = None  # ms; the next run is at this or later
    limit: int = 50
    cursor: str | None = None


class JobLists(Topic):
    async def list_jobs(self, tenant: int, wanted: JobFilter) -> Page[JobView]:
        """One page of jobs that pass all the filters."""
        check_limit(wanted.limit)
        _check_words(wanted)
        if wanted.status is not None:
            await settle(self.driver)
        drive = _drive(wanted)
        few = drive == "next" and wanted.tag is not None and await self._few_have(tenant, wanted.tag)
        name, args = statement_for(tenant, wanted, few=few)
        rows = await self.driver.read(lambda tx: tx.rows(name, *args))
        shown = rows[: wanted.limit]
        more = len(rows) > wanted.limit
        return Page(
            items=[job_view(row) for row in shown],
            next=seal_cursor(_asked(wanted), *_position(drive, shown[-1])) if more else None,
        )

    async def _few_have(self, tenant: int, tag: str) -> bool:
        row = await self.driver.read(lambda tx: tx.row("count_tagged", tenant, tag, FEW + 1))
        return row is not None and row["n"] <= FEW


def _check_words(wanted: JobFilter) -> None:
    for name, given, accepted in (
        ("status", wanted.status, STATES),
        ("target", wanted.target, target_types()),
        ("schedule", wanted.schedule, SCHEDULE_KINDS),
    ):
        if given is not None and given not in accepted:
            raise Invalid.one(name, "unknown", given=given, accepted=", ".join(accepted))


def _asked(wanted: JobFilter) -> str:
    return fingerprint("jobs", msgspec.structs.astuple(msgspec.structs.replace(wanted, limit=0, cursor=None)))


def _drive(wanted: JobFilter) -> str:
    if wanted.next_before is not None or wanted.next_after is not None:
        return "next"
    if wanted.q:
        return "matching"
    if wanted.tag is not None:
        return "tagged"
    return "owned" if wanted.owner is not None else "newest"


def _position(drive: str, row: Row) -> tuple[int | str, ...]:
    if drive in ("newest", "tagged", "owned"):
        return (row["id"],)
    return row["matched"], row["run" if drive == "next" else "id"]


def statement_for(tenant: int, wanted: JobFilter, *, few: bool = False) -> tuple[str, list[Any]]:
    """The statement's name, made of fixed parts, and its arguments. few: not many jobs have the tag."""
    drive, limit = _drive(wanted), wanted.limit + 1
    kinds = {"next": (int, str), "matching": (str, int)}.get(drive, (int,))
    position = None if wanted.cursor is None else open_cursor(wanted.cursor, _asked(wanted), kinds)
    low, high = _prefix(wanted.q)
    state, target, schedule = NARROWED["kinds" if drive == "newest" else "rows"]
    where: list[tuple[str, list[Any]]] = [
        (state, [wanted.status]),
        (target, [wanted.target]),
        (schedule, [wanted.schedule]),
    ]
    if drive != "tagged" and not few:
        where.append(("where.tag", [wanted.tag]))
    if drive != "owned":
        where.append(("where.owner", [wanted.owner]))
    args: list[Any]
    if drive == "next":
        before = NEVER if wanted.next_before is None else wanted.next_before
        name, args = "list_jobs_by_next", [tenant, before, *(position or (_before(wanted.next_after), LAST_RUN)), limit]
        if few:
            name, args = "list_jobs_by_next_tagged", [*args, wanted.tag, 2 * FEW]  # some may just have come
        where.append(("where.matching", [low, high]))
    elif drive == "matching":
        start = max((low, 0), tuple(position or ()))  # a cursor from elsewhere must not lead out of the prefix
        name, args = "list_jobs_matching", [tenant, low, high, *start, limit]
    elif drive == "tagged":
        name, args = "list_jobs_tagged", [tenant, wanted.tag, *(position or (NEVER,)), limit]
    elif drive == "owned":
        name, args = "list_jobs_owned", [tenant, wanted.owner, *(position or (NEVER,)), limit]
    else:
        name, args = "list_jobs", [tenant, *(position or (NEVER,)), limit]
    used = [(part, given) for part, given in where if given[0] is not None]
    parts = "".join(f"+{part}" for part, _ in used)
    if wanted.status is not None:
        parts += "+where.so_still"
    return name + VIEW + parts, [*args, *(value for _, given in used for value in given)]


def _prefix(q: str | None) -> tuple[str | None, str | None]:
    low = search_text(q or None)
    return (None, None) if low is None else (low, low + END)


def _before(instant: int | None) -> int:
    return -(2**63) if instant is None else instant - 1
