"""Dead letters: listed, grouped by cause, closed with a note. (`runs.verbs` drives them again.)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from onthedot.model.dead import DeadGroup, DeadGroups, DeadLetterView, DiscardNote
from onthedot.model.instant import format_instant
from onthedot.model.run import RunView
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.idempotency import Idempotency, once
from onthedot.store.paging import Page, check_limit, fingerprint, open_cursor, seal_cursor
from onthedot.store.runs.listed import listed_run, that_fit, with_params
from onthedot.store.runs.run_page import LAST, LAST_ID
from onthedot.store.runs.views import history_view
from onthedot.store.topic import Topic

__all__ = ["ALL_LETTERS", "DeadLetters", "LetterFilter", "close_letters", "letter_parts"]

GROUPED = 10_000
"""So many letters are looked at to group them."""


class LetterFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Times in ms, both included."""

    ids: Sequence[str] | None = None
    job_id: int | None = None
    cause: str | None = None
    since: int | None = None
    until: int | None = None


ALL_LETTERS = LetterFilter()


class DeadLetters(Topic):
    async def list_dead(
        self, tenant: int, wanted: LetterFilter = ALL_LETTERS, *, limit: int = 50, cursor: str | None = None
    ) -> Page[DeadLetterView]:
        """Those that nobody has driven again or closed, the last that failed first."""
        return await self._list("list_dead", "failed_at", tenant, wanted, limit, cursor)

    async def list_discarded(
        self, tenant: int, wanted: LetterFilter = ALL_LETTERS, *, limit: int = 50, cursor: str | None = None
    ) -> Page[DeadLetterView]:
        """Those that somebody closed, the last of them first."""
        return await self._list("list_discarded", "discarded_at", tenant, wanted, limit, cursor)

    async def _list(
        self, name: str, order: str, tenant: int, wanted: LetterFilter, limit: int, cursor: str | None
    ) -> Page[DeadLetterView]:
        check_limit(limit)
        asked = fingerprint(name, tenant, wanted.job_id, wanted.cause, wanted.since, wanted.until)
        place = open_cursor(cursor, asked, (int, str)) if cursor is not None else [LAST, LAST_ID]
        where, args = letter_parts(wanted)

        async def body(tx: Transaction) -> Page[DeadLetterView]:
            rows = await tx.rows(f"{name}{where}", tenant, *place, limit + 1, *args)
            shown = that_fit([listed_run(row, history_view(row), order) for row in rows], limit)
            more = seal_cursor(asked, *shown[-1].position) if len(rows) > len(shown) else None
            views, closed = await with_params(tx, shown), name == "list_discarded"
            return Page(
                items=[_view(row, view, closed=closed) for row, view in zip(rows, views, strict=False)], next=more
            )

        return await self.driver.read(body)

    async def group_dead(
        self, tenant: int, wanted: LetterFilter = ALL_LETTERS, window: int | None = None
    ) -> DeadGroups:
        """By cause; with `window` (ms) also by the stretch of time in which they failed."""
        where, args = letter_parts(wanted)
        name, given = ("group_dead", []) if window is None else ("group_dead_by_window", [window])
        rows = await self.driver.read(lambda tx: tx.rows(f"{name}{where}", tenant, GROUPED + 1, *given, *args))
        groups = [
            DeadGroup(
                cause=row["cause"],
                count=row["letters"],
                jobs=row["jobs"],
                first_at=format_instant(row["first_at"]),
                last_at=format_instant(row["last_at"]),
                job_id=row["job_id"] if row["jobs"] == 1 else None,
            )
            for row in rows
        ]
        return DeadGroups(items=groups, exact=sum(group.count for group in groups) <= GROUPED)

    async def discard(
        self,
        tenant: int,
        wanted: LetterFilter,
        *,
        note: str | None,
        actor: str | None,
        limit: int = 1000,
        idempotency: Idempotency | None = None,
    ) -> list[str]:
        """Closed, newest first, at most `limit`. The ledger does not change. Their ids."""
        where, args = letter_parts(wanted)

        async def close(tx: Transaction) -> list[str]:
            taken = [row["id"] for row in await tx.rows(f"take_dead{where}", tenant, limit, *args)]
            await close_letters(tx, taken, note, actor)
            return taken

        return await self.as_asked(lambda tx: once(tx, tenant, idempotency, list[str], lambda: close(tx)))


async def close_letters(tx: Transaction, ids: Sequence[str], note: str | None, actor: str | None) -> None:
    """These are locked."""
    if ids:
        await tx.execute("keep_discarded", list(ids), note, actor, await tx.now())
        await tx.execute("delete_dead", list(ids))


def letter_parts(wanted: LetterFilter) -> tuple[str, list[Any]]:
    """The parts of a statement about dead letters, and their arguments."""
    given = [
        ("where.dead_ids", None if wanted.ids is None else list(wanted.ids)),
        ("where.dead_job", wanted.job_id),
        ("where.dead_cause", wanted.cause),
        ("where.dead_since", wanted.since),
        ("where.dead_until", wanted.until),
    ]
    used = [(part, value) for part, value in given if value is not None]
    return "".join(f"+{part}" for part, _ in used) or "+where.any_dead", [value for _, value in used]


def _view(row: Row, run: RunView, *, closed: bool) -> DeadLetterView:
    note = None
    if closed:
        note = DiscardNote(note=row["note"], by=row["actor"], at=format_instant(row["discarded_at"]))
    shown = {name: getattr(run, name) for name in run.__struct_fields__}
    return DeadLetterView(**shown, cause=row["cause"], discarded=note)
