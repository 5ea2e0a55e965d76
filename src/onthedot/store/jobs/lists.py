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
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.close_one_offs import NOTED
from onthedot.store.jobs.rows import search_text
from onthedot.store.jobs.views import VIEW, job_view
from onthedot.store.paging import Page, check_limit, fingerprint, open_cursor, seal_cursor
from onthedot.store.topic import Topic

__all__ = ["JobFilter", "JobLists", "noted_for", "statement_for"]

STATES: tuple[str, ...] = typing.get_args(JobState)
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
        drive = _drive(wanted)
        few = drive == "next" and wanted.tag is not None and await self._few_have(tenant, wanted.tag)
        rows = await self.driver.read(lambda tx: _read(tx, tenant, wanted, few=few))
        shown = rows[: wanted.limit]
        more = len(rows) > wanted.limit
        return Page(
            items=[job_view(row) for row in shown],
            next=seal_cursor(_asked(wanted), *_position(drive, shown[-1])) if more else None,
        )

    async def _few_have(self, tenant: int, tag: str) -> bool:
        row = await self.driver.read(lambda tx: tx.row("count_tagged", tenant, tag, FEW + 1))
        return row is not None and row["n"] <= FEW


async def _read(tx: Transaction, tenant: int, wanted: JobFilter, *, few: bool) -> list[Row]:
    """One more than the page holds. By state the ended ones are found where their rows say so, and by the notes of
    those whose rows do not yet; the notes first, so that what is closed in between is found twice and not missed."""
    found: dict[int, Row] = {}
    if wanted.status == "ended" and _drive(wanted) == "newest":
        name, args = noted_for(tenant, wanted)
        found = {row["id"]: row for row in await tx.rows(name, *args)}
    name, args = statement_for(tenant, wanted, few=few)
    rows = await tx.rows(name, *args)
    if not found:
        return list(rows)
    found |= {row["id"]: row for row in rows}
    return [found[job_id] for job_id in sorted(found, reverse=True)][: wanted.limit + 1]


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
    position = _opened(wanted, drive)
    low, high = _prefix(wanted.q)
    where: list[_Part] = [
        *_by_state(wanted.status, drive),
        ("kinds.target" if drive == "newest" else "where.target", [wanted.target]),
        ("kinds.schedule" if drive == "newest" else "where.schedule", [wanted.schedule]),
        ("where.tag", [None if drive == "tagged" or few else wanted.tag]),
        ("where.owner", [None if drive == "owned" else wanted.owner]),
    ]
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
    return _composed(name, args, where)


def noted_for(tenant: int, wanted: JobFilter) -> tuple[str, list[Any]]:
    """The same for the newest ended jobs whose rows do not say so yet."""
    args = [tenant, NOTED, *(_opened(wanted, "newest") or (NEVER,)), wanted.limit + 1]
    return _composed(
        "list_jobs_noted", args, [("where.target", [wanted.target]), ("where.schedule", [wanted.schedule])]
    )


_Part = tuple[str, list[Any]]
"""A part of a statement and its arguments; without one of them it is left out."""


def _by_state(state: str | None, drive: str) -> list[_Part]:
    """The newest are taken of the kinds that are wanted; other lists drop what is not. Of an active or paused one-off
    whose firing is over the row may not say yet that it has ended."""
    if state is None:
        return []
    if state == "ended":
        return [("kinds.state", [state])] if drive == "newest" else [("where.over", [])]
    return [("kinds.state" if drive == "newest" else "where.state", [state]), ("where.so_still", [])]


def _composed(name: str, args: list[Any], where: list[_Part]) -> tuple[str, list[Any]]:
    used = [(part, given) for part, given in where if None not in given]
    return name + VIEW + "".join(f"+{part}" for part, _ in used), [
        *args,
        *(value for _, given in used for value in given),
    ]


def _opened(wanted: JobFilter, drive: str) -> list[Any] | None:
    """Where the page before ended."""
    kinds = {"next": (int, str), "matching": (str, int)}.get(drive, (int,))
    return None if wanted.cursor is None else open_cursor(wanted.cursor, _asked(wanted), kinds)


def _prefix(q: str | None) -> tuple[str | None, str | None]:
    low = search_text(q or None)
    return (None, None) if low is None else (low, low + END)


def _before(instant: int | None) -> int:
    return -(2**63) if instant is None else instant - 1
