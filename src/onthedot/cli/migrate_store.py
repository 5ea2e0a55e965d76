"""`onthedot migrate-store`: move everything from SQLite to PostgreSQL, or back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from onthedot.cli.options import AsJson
from onthedot.cli.output import print_json, say
from onthedot.cli.progress import ProgressLine

if TYPE_CHECKING:
    from onthedot.store.moving.move import MoveReport, Moving

__all__ = ["migrate_store"]

PATIENCE = 120
"""Seconds that one statement may take, unless the address says otherwise: to count a large table is one."""


def migrate_store(
    source: Annotated[str, typer.Argument(metavar="FROM", help="Store URL to move from")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Store URL to move to; an empty database")],
    abort: Annotated[
        bool, typer.Option("--abort", help="Give up an unfinished move; FROM can be served again")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Move a store from SQLite to PostgreSQL, or back: jobs, runs, history, logs, keys, tenants and all the rest.

    Stop all nodes first. An interrupted move continues when you run the same command again. Afterwards FROM can't be
    served any more, and says where it went.
    """
    from onthedot.launcher.banner import without_password

    names = {"from": without_password(source), "to": without_password(target)}
    if abort:
        asyncio.run(_abort(source, target))
        if as_json:
            print_json({**names, "aborted": True})
        else:
            say(f"Aborted. {names['from']} can be served again.")
        return
    with ProgressLine() as line:
        report = asyncio.run(_move(source, target, line))
    rows = sum(report.tables.values())
    if as_json:
        done = {"resumed": report.resumed, "repeated": report.repeated, "rows": rows, "tables": report.tables}
        print_json({**names, **done})
    elif report.repeated:
        say(f"{names['from']} was moved to {names['to']} before; nothing to do.")
    else:
        jobs, runs, history = (f"{report.tables[name]:,}" for name in ("jobs", "runs", "history"))
        say(f"Moved {rows:,} rows: {jobs} jobs, {runs} runs to come, {history} ended runs and skipped slots.")
        say(f"Start your nodes with --store {names['to']}.")


@asynccontextmanager
async def _opened(source: str, target: str) -> AsyncIterator[Moving]:
    from onthedot.errors import Conflict
    from onthedot.launcher.banner import without_password
    from onthedot.store import open_driver
    from onthedot.store.moving.move import Moving

    if ":memory:" in source + target:
        raise Conflict("a store in memory can't be moved")
    here = await open_driver(_patient(source), create=False)
    try:
        there = await open_driver(_patient(target))
        try:
            names = {"source_name": without_password(source), "target_name": without_password(target)}
            yield Moving(source=here, target=there, **names)
        finally:
            await there.close()
    finally:
        await here.close()


async def _move(source: str, target: str, line: ProgressLine) -> MoveReport:
    from onthedot.store.moving.move import move_store

    async with _opened(source, target) as moving:
        return await move_store(moving, line.tell)


async def _abort(source: str, target: str) -> None:
    from onthedot.store.moving.move import abort_move

    async with _opened(source, target) as moving:
        await abort_move(moving)


def _patient(url: str) -> str:
    if not url.startswith("postgres") or "timeout=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}timeout={PATIENCE}"
