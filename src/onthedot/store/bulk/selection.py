"""Which jobs and dead letters an operation is for, some at a time: by falling id, or the last that failed first.
What an operation does to a job never moves it in that order, so nothing is met twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from onthedot.model.bulk import BulkFilter
from onthedot.model.instant import parse_rfc3339
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.job_filter import JobFilter
from onthedot.store.jobs.list_statements import conditions_of
from onthedot.store.runs.dead_letters import LetterFilter, letter_parts

__all__ = ["FoundJobs", "dead_letters_after", "jobs_below", "letters_of"]

WINDOW = 5000
"""Jobs that one statement looks through."""

WINDOWS = 40
"""Windows that one transaction looks through: a filter that few jobs pass holds nobody up."""

_Position = list[int | str]


class FoundJobs(msgspec.Struct, frozen=True, kw_only=True):
    """`below`: where to go on. `all_seen`: there are no more."""

    ids: list[int]
    below: int
    all_seen: bool


async def jobs_below(
    tx: Transaction, tenant: int, wanted: BulkFilter, below: int, most: int, windows: int = WINDOWS
) -> FoundJobs:
    """Up to `most` jobs that match and have an id below this one, the newest first."""
    windows_of, jobs_in, named = "job_window", "jobs_in_window", list[str]()
    if wanted.tag is not None:
        windows_of, jobs_in, named = "job_window_tagged", "jobs_in_window_tagged", [wanted.tag]
    where = _conditions(wanted)
    statement = jobs_in + "".join(f"+{part}" for part, _ in where)
    given = [*named, *(value for _, values in where for value in values)]
    found: list[int] = []
    for _ in range(windows):
        window = await tx.row(windows_of, tenant, below, WINDOW, *named)
        assert window is not None
        if not window["n"]:
            return FoundJobs(ids=found, below=below, all_seen=True)
        rows = await tx.rows(statement, tenant, below, window["last"], most - len(found), *given)
        found += [row["id"] for row in rows]
        if len(found) == most:
            return FoundJobs(ids=found, below=found[-1], all_seen=False)
        below = window["last"]
        if window["n"] < WINDOW:
            return FoundJobs(ids=found, below=below, all_seen=True)
    return FoundJobs(ids=found, below=below, all_seen=False)


def _conditions(wanted: BulkFilter) -> list[tuple[str, list[Any]]]:
    """Those of the list of jobs. Its order by next run moves meanwhile, so that is a condition here."""
    said = {name: getattr(wanted, name) for name in wanted.__struct_fields__ if name in JobFilter.__struct_fields__}
    said |= {name: parse_rfc3339(said[name] or "") for name in ("next_after", "next_before")}
    parts = conditions_of(JobFilter(**said), "window" if wanted.tag is None else "tagged", rest=False)
    return parts or [("where.any_job", [])]


async def dead_letters_after(
    tx: Transaction, tenant: int, wanted: BulkFilter, position: _Position, most: int
) -> Sequence[Row]:
    """Dead letters that failed before this one, the last of them first. Whoever else has one in hand keeps it."""
    where, args = letters_of(wanted)
    return await tx.rows("dead_letters_below" + where, tenant, *position, most, *args)


def letters_of(wanted: BulkFilter) -> tuple[str, list[Any]]:
    """The parts of a statement about dead letters, and their arguments."""
    since, until = parse_rfc3339(wanted.since or ""), parse_rfc3339(wanted.until or "")
    return letter_parts(LetterFilter(job_id=wanted.job_id, cause=wanted.cause, since=since, until=until))
