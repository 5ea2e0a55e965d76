"""Which statement a list of jobs is, and how far one page of it looks.

What drives: `sort` the index of that order; without it `next_before`/`next_after` the indexes of cursors (ordered by
next run), else `failing` the table of noticed jobs, else `q` the two of search texts (jobs that begin with it, ordered
by the text that matched), else `tag` its own, else `owner` its own, else `late` the noticed jobs and the overdue
cursors, else the newest first. The other filters narrow that down. A tag that few jobs have drives the list by next
run, too, in the same order.

Some orders do not hold all jobs: those without a name, without a next or a last run, and those that have the words of
`q` elsewhere than at the beginning. They come after, as a second list (`rest`), the newest first.
"""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.errors import Invalid
from onthedot.model.instant import NEVER
from onthedot.store.driver import Row
from onthedot.store.jobs.close_one_offs import NOTED
from onthedot.store.jobs.job_filter import JobFilter, asked_of
from onthedot.store.jobs.search_words import SHORT, after_prefix, prefix_of, words_of
from onthedot.store.jobs.views import LISTED
from onthedot.store.paging import open_cursor

__all__ = [
    "FEW",
    "SCANNED",
    "conditions_of",
    "drive_of",
    "in_rest",
    "noted_for",
    "position_in",
    "reach_for",
    "rest_of",
    "statement_for",
]

FEW = 5000
"""Jobs with a tag, up to which the next run of each is looked up. Read by next run instead, a tag that one job in a
thousand has makes a page read a thousand times as many."""

SCANNED = 2000
"""Jobs that one page looks at to find those that pass filters without an index: about 20 ms. A page that finds too few
among them is short, and the next one goes on behind them."""

OVERDUE = 1000
"""Jobs whose next run is overdue that a list of late ones knows; of more, those that are overdue longest."""

FIRST = -(2**63)
LAST_RUN = "~"  # above the id of any run
LAST_TEXT = after_prefix("")

_POSITIONS = {"next": (int, str), "last": (int, str), "matching": (str, int), "name": (str, int)}
_REST = {"name": "where.unnamed", "next": "where.no_next", "last": "where.never_ran", "matching": "where.not_matching"}
_Part = tuple[str, list[Any]]
"""A part of a statement and its arguments; without one of them it is left out."""


def drive_of(wanted: JobFilter) -> str:
    if in_rest(wanted):
        return "newest"
    if wanted.sort is not None:
        return wanted.sort.removeprefix("-")
    if _between(wanted):
        return "next"
    if wanted.failing or wanted.last_status == "FAILED":
        return "failing"
    if words_of(wanted.q):
        return "matching"
    if wanted.tag is not None:
        return "tagged"
    if wanted.owner is not None:
        return "owned"
    return "late" if wanted.late else "newest"


def position_in(drive: str, row: Row) -> tuple[int | str, ...]:
    if drive not in _POSITIONS:
        return (row["id"],)
    return row["matched"], row["run" if _POSITIONS[drive] == (int, str) else "id"]


def rest_of(wanted: JobFilter) -> tuple[int, ...] | None:
    """Where the second list of jobs begins. None: there is none, or this is it."""
    drive = drive_of(wanted)
    if in_rest(wanted) or drive not in _REST or (drive == "next" and _between(wanted)):
        return None
    return (NEVER,)


def in_rest(wanted: JobFilter) -> bool:
    """Whether the cursor is one of the second list: a job's id and no more."""
    if wanted.cursor is None:
        return False
    first = drive_of(msgspec.structs.replace(wanted, cursor=None))
    if first not in _REST:
        return False
    try:
        open_cursor(wanted.cursor, asked_of(wanted), _POSITIONS[first])
    except Invalid:
        open_cursor(wanted.cursor, asked_of(wanted), (int,))
        return True
    return False


def reach_for(tenant: int, wanted: JobFilter) -> tuple[str, list[Any]] | None:
    """Asks for the last job that this page looks at. None: all that the list is driven by is shown, or nearly all."""
    drive = drive_of(wanted)
    parts = conditions_of(wanted, drive)
    if drive != "last" and all(name == "where.so_still" or name.startswith("kinds.") for name, _ in parts):
        return None
    place = _place(wanted, drive)
    if drive == "newest":
        kinds = [part for part in parts if part[0].startswith("kinds.")] or [("kinds.any", [])]
        return _composed("reach_newest", [tenant, *place, SCANNED], kinds, view="")
    if drive == "tagged":
        return "reach_tagged", [tenant, wanted.tag, *place, SCANNED]
    if drive == "owned":
        return "reach_owned", [tenant, wanted.owner, *place, SCANNED]
    if drive == "matching":
        return "reach_matching", [tenant, *place, after_prefix(prefix_of(wanted.q)), SCANNED]
    if drive in ("failing", "late"):
        return "reach_noticed", [tenant, drive, *place, SCANNED]
    name = {"name": "reach_by_name", "next": "reach_by_next", "last": "reach_by_last"}[drive]
    return _composed(name, [tenant, *place, SCANNED], _way(wanted), view="")


def statement_for(
    tenant: int, wanted: JobFilter, *, few: bool = False, reach: tuple[Any, ...] | None = None
) -> tuple[str, list[Any]]:
    """The statement's name, made of fixed parts, and its arguments. few: not many jobs have the tag. reach: the
    position of the last job that this page looks at."""
    drive, limit, down = drive_of(wanted), wanted.limit + 1, _down(wanted)
    place = _place(wanted, drive)
    end = [None] if reach is None else list(reach)
    where = conditions_of(wanted, drive, few=few)
    args: list[Any] = [tenant, *place, limit]
    if drive == "next":
        low, high = _bounds(wanted)
        # SQLite begins at the bounds, not at the place
        low, high = (low, min(high, place[0] + 1)) if down else (max(low, place[0]), high)
        if few and not down:
            return _composed("list_jobs_by_next_tagged", [tenant, high, *place, limit, wanted.tag, 2 * FEW], where)
        if reach is not None:  # the bounds of the indexes, and among those of one instant the id
            low, high = (max(low, reach[0]), high) if down else (low, min(high, reach[0] + 1))
        where += [("where.next_down_to" if down else "where.next_up_to", end), *_way(wanted)]
        return _composed("list_jobs_by_next", [tenant, high, *place, limit, low], where)
    if drive == "matching":
        first = prefix_of(wanted.q)
        beyond = after_prefix(first) if reach is None else min(after_prefix(first), f"{reach[0]}\x01")
        return _composed("list_jobs_matching", [tenant, first, beyond, *place, limit], where)
    if drive == "name":
        where += [("where.name_down_to" if down else "where.name_up_to", end), *_way(wanted)]
        return _composed("list_jobs_by_name", args, where)
    if drive == "last":
        end_slot = None if reach is None else reach[0]
        slots = [end_slot or FIRST, place[0]] if down else [place[0], end_slot or NEVER]
        where += [("where.last_down_to" if down else "where.last_up_to", end), *_way(wanted)]
        return _composed("list_jobs_by_last", [*args, *slots], where)
    if drive == "newest":
        return _composed("list_jobs", args, [*where, ("where.down_to", end)])
    if drive == "tagged":
        return _composed(
            "list_jobs_tagged", [tenant, wanted.tag, *place, limit], [*where, ("where.found_down_to", end)]
        )
    if drive == "owned":
        return _composed(
            "list_jobs_owned", [tenant, wanted.owner, *place, limit], [*where, ("where.owned_down_to", end)]
        )
    if drive == "failing":
        return _composed("list_jobs_noticed", [tenant, drive, *place, limit], [*where, ("where.found_down_to", end)])
    return _composed("list_jobs_late", [tenant, drive, *place, limit, OVERDUE, end[0] or 0], where)


def noted_for(tenant: int, wanted: JobFilter, *, reach: tuple[Any, ...] | None = None) -> tuple[str, list[Any]]:
    """The same for the newest ended jobs whose rows do not say so yet."""
    args = [tenant, NOTED, *_place(wanted, "newest"), wanted.limit + 1]
    others = msgspec.structs.replace(wanted, status=None, ended=None)
    where = conditions_of(others, "noted", rest=in_rest(wanted))
    where.append(("where.down_to", [None] if reach is None else [*reach]))
    return _composed("list_jobs_noted", args, where)


def _down(wanted: JobFilter) -> bool:
    return wanted.sort is not None and wanted.sort.startswith("-")


def _way(wanted: JobFilter) -> list[_Part]:
    return [("than.down", []), ("way.down", [])] if _down(wanted) else [("than.up", []), ("way.up", [])]


def _between(wanted: JobFilter) -> bool:
    return wanted.next_before is not None or wanted.next_after is not None


def _bounds(wanted: JobFilter) -> tuple[int, int]:
    """Of the next run: from, and before."""
    low, high = wanted.next_after, wanted.next_before
    return FIRST if low is None else low, NEVER if high is None else high


def _place(wanted: JobFilter, drive: str) -> list[Any]:
    """Where the page before ended, or what comes before all."""
    low, high = _bounds(wanted)
    down, opened = _down(wanted), None
    if wanted.cursor is not None:
        opened = open_cursor(wanted.cursor, asked_of(wanted), _POSITIONS.get(drive, (int,)))
    if drive == "matching":
        return list(max((prefix_of(wanted.q), 0), tuple(opened or ())))  # not out of the prefix
    if opened is not None:
        return opened
    first: dict[str, list[Any]] = {
        "next": [high, ""] if down else [max(FIRST, low - 1), LAST_RUN],
        "last": [NEVER, LAST_RUN] if down else [FIRST, ""],
        "name": [LAST_TEXT, NEVER] if down else ["", FIRST],
    }
    return first.get(drive, [NEVER])


def _by_state(wanted: JobFilter, drive: str) -> list[_Part]:
    """The newest are taken of the kinds that are wanted; other lists drop what is not. Of an active or paused one-off
    whose firing is over the row may not say yet that it has ended."""
    newest, parts = drive == "newest", list[_Part]()
    for state in {wanted.status, "ended" if wanted.ended else None} - {None}:
        if state != "ended":
            parts += [("kinds.state" if newest else "where.state", [state]), ("where.so_still", [])]
        else:
            parts.append(("kinds.state", [state]) if newest else ("where.over", []))
    if wanted.ended is False:
        parts += [("kinds.not_ended" if newest else "where.not_ended", []), ("where.so_still", [])]
    return parts


def conditions_of(wanted: JobFilter, drive: str, *, few: bool = False, rest: bool | None = None) -> list[_Part]:
    """What drops some of the jobs that the list is driven by, as far as it is given."""
    newest, last = drive == "newest", wanted.last_status
    parts: list[_Part] = [
        *_by_state(wanted, drive),
        ("kinds.target" if newest else "where.target", [wanted.target]),
        ("kinds.schedule" if newest else "where.schedule", [wanted.schedule]),
        ("where.tag", [None if drive == "tagged" or few else wanted.tag]),
        ("where.owner", [None if drive == "owned" else wanted.owner]),
        ("where.next_between", [*_bounds(wanted)] if drive != "next" and _between(wanted) else [None]),
        ("where.last_carried_out", [last.lower() if last in ("DONE", "FAILED") else None]),
        ("where.last_not_carried_out", [last.lower() if last in ("CANCELLED", "SKIPPED") else None]),
        ("where.last_carried_out", ["failed" if wanted.failing else None]),
        *_by_words(wanted, drive),
        *_only_rest(wanted, in_rest(wanted) if rest is None else rest),
    ]
    for given, name in (
        (wanted.failing is False, "where.not_failing"),
        (wanted.never_ran is True, "where.never_ran"),
        (wanted.never_ran is False, "where.ran"),
        (wanted.late is True, "where.late"),
        (wanted.late is False, "where.not_late"),
    ):
        if given:
            parts.append((name, []))
    return [part for part in parts if None not in part[1]]


def _by_words(wanted: JobFilter, drive: str) -> list[_Part]:
    if drive == "matching":  # what begins with all of it has each word of it
        return []
    return [("where.word" if len(word) >= SHORT else "where.short_word", [word]) for word in words_of(wanted.q)]


def _only_rest(wanted: JobFilter, rest: bool) -> list[_Part]:
    """What the second list does not say again."""
    if not rest:
        return []
    first = drive_of(msgspec.structs.replace(wanted, cursor=None))
    if first == "matching":
        word = prefix_of(wanted.q)
        return [("where.not_matching", [word, after_prefix(word)])]
    return [(_REST[first], [])]


def _composed(name: str, args: list[Any], where: list[_Part], *, view: str = LISTED) -> tuple[str, list[Any]]:
    used = [(part, given) for part, given in where if None not in given]
    text = name + view + "".join(f"+{part}" for part, _ in used)
    return text, [*args, *(value for _, given in used for value in given)]
