"""`onthedot migrate-store`: all that a store holds goes into another database, and nobody serves the first any more.

From the first moment on the source refuses to be served, and the target until all is there: never can both be. A move
that is interrupted goes on when it is asked for again; one that is given up leaves the source as it was.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import msgspec

from onthedot.errors import Conflict, StoreError, StoreInUse
from onthedot.model.instant import format_instant
from onthedot.store.driver import Driver, Transaction
from onthedot.store.migrate import check_version, known_migrations, migrate
from onthedot.store.moving.catalog import StoredTable, common_tables
from onthedot.store.moving.copying import Progress, check_counts, clear_tables, copy_tables, count_rows
from onthedot.store.moving.marks import MoveState, clear_state, find_mark, read_state, write_state
from onthedot.store.queries import MOVED_MARK

__all__ = ["MoveReport", "Moving", "abort_move", "move_store"]

SILENT_MS = 10_000
"""Two leases: a node that has not beaten for so long is not there any more."""

_USED = {
    "jobs": "jobs",
    "runs": "runs to come",
    "history": "ended runs",
    "deleted_jobs": "deleted jobs",
    "api_keys": "API keys",
}
"""A target with rows in one of these tables is somebody's; and what they are, for who reads that."""

_SEQUENCES = ("job_ids", "run_numbers")


class Moving(msgspec.Struct, frozen=True, kw_only=True):
    """Two stores, and how messages call them: without passwords."""

    source: Driver
    target: Driver
    source_name: str
    target_name: str


class MoveReport(msgspec.Struct, frozen=True, kw_only=True):
    tables: dict[str, int]
    resumed: bool = False
    repeated: bool = False  # it had been moved before: nothing was done


async def move_store(move: Moving, tell: Progress) -> MoveReport:
    _check_kinds(move)
    ours, theirs = await _prepared(move.source), await _prepared(move.target)
    _refuse_strangers(move, ours, theirs)
    if ours is not None and ours.state == "moved":
        assert theirs is not None
        return MoveReport(tables=theirs.tables, repeated=True)
    tables = await common_tables(move.source, move.target)
    resumed = theirs is not None and ours is not None and theirs.id == ours.id
    if theirs is None or not resumed:
        theirs = await _begin(move, ours, tables)
    if theirs.state != "complete":
        theirs = await copy_tables(move.source, move.target, tables, theirs, tell)
        await check_counts(move.source, move.target, tables, theirs)
        await _complete(move, tables, theirs)
    await _mark_moved(move, theirs)
    return MoveReport(tables=theirs.tables, resumed=resumed)


async def abort_move(move: Moving) -> None:
    """The source can be served again. What was copied stays where it is, and a new move clears it away."""
    ours = await read_state(move.source) if await find_mark(move.source) is not None else None
    if ours is None:
        raise Conflict(f"{move.source_name} is not being moved")
    theirs = await read_state(move.target) if await find_mark(move.target) is not None else await _state(move.target)
    if ours.state == "moved" or (theirs is not None and theirs.id == ours.id and theirs.state == "complete"):
        raise Conflict(f"{move.source_name} was moved to {ours.other} completely; that store is served now")
    if theirs is not None and theirs.id == ours.id:
        remains = msgspec.structs.replace(theirs, state="aborted")
        words = f"this store has the remains of a move from {move.source_name} that was aborted; move to it, or drop it"
        await move.target.transact_slow(lambda tx: write_state(tx, remains, words))
    await move.source.transact_slow(clear_state)


def _check_kinds(move: Moving) -> None:
    if move.source.dialect == move.target.dialect:
        advice = (
            "to copy a SQLite store, use `onthedot backup` and `onthedot restore`"
            if move.source.dialect == "sqlite"
            else "to copy a PostgreSQL store, use pg_dump and pg_restore"
        )
        raise Conflict(f"one of the two stores must be SQLite, the other PostgreSQL; {advice}")


async def _prepared(driver: Driver) -> MoveState | None:
    """Up to date, unless it is part of a move: then this version must know its tables as they are."""
    if await find_mark(driver) is None:
        await migrate(driver)
        await driver.check_lineage()
    else:
        await driver.transact_slow(lambda tx: _check_same_version(driver, tx))
    return await read_state(driver)


async def _state(driver: Driver) -> MoveState | None:
    return None if await check_version(driver) else await read_state(driver)


async def _check_same_version(driver: Driver, tx: Transaction) -> None:
    there = {row["number"] for row in await tx.rows("versions")} - {MOVED_MARK}
    if there != {migration.number for migration in known_migrations(driver.dialect)}:
        raise StoreError("the move was begun by another version of On the Dot; finish or abort it with that version")


def _refuse_strangers(move: Moving, ours: MoveState | None, theirs: MoveState | None) -> None:
    """Another move than this one has one of the two."""
    if ours is not None and theirs is not None and ours.id == theirs.id:
        return
    if ours is not None and ours.state == "moved":
        raise Conflict(f"{move.source_name} was moved to {ours.other} at {format_instant(ours.at)}")
    if theirs is not None and theirs.state == "moved":
        raise Conflict(f"{move.target_name} was itself moved, to {theirs.other}; choose an empty database")
    if theirs is not None and theirs.state in ("copying", "moving"):
        raise Conflict(
            f"{move.target_name} takes part in another move, with {theirs.other}; finish or abort that one, or choose"
            " an empty database"
        )
    if ours is not None and ours.state == "moving" and ours.other != move.target_name:
        raise Conflict(f"{move.source_name} is being moved to {ours.other}; finish that, or give it up with --abort")


async def _begin(move: Moving, ours: MoveState | None, tables: Sequence[StoredTable]) -> MoveState:
    """The source first: a target that nobody knows of would stand in the way of the next try."""
    await _refuse_used(move)
    now = await move.source.read(lambda tx: tx.now())
    state = ours or MoveState(id=uuid.uuid4().hex, state="moving", other=move.target_name, at=now)
    words = (
        f"this store is being moved to {move.target_name}. To finish that, repeat `onthedot migrate-store` with both"
        " addresses; to give it up, add --abort"
    )
    await move.source.transact_slow(lambda tx: write_state(tx, state, words))
    try:
        await _refuse_live(move.source, move.source_name)
        await _refuse_live(move.target, move.target_name)
    except BaseException:
        if ours is None:
            await move.source.transact_slow(clear_state)
        raise
    await move.source.transact_slow(_forget_nodes)
    copying = MoveState(id=state.id, state="copying", other=move.source_name, at=now)
    unfinished = (
        f"this store is the unfinished copy of {move.source_name}. To finish it, repeat `onthedot migrate-store` with"
        " both addresses"
    )
    await clear_tables(move.target, tables)
    await move.target.transact_slow(lambda tx: write_state(tx, copying, unfinished))
    return copying


async def _forget_nodes(tx: Transaction) -> None:
    """One that was frozen all the time finds itself lost when it wakes, and can't register again."""
    await tx.execute("declare_all_lost")


async def _refuse_used(move: Moving) -> None:
    state = await read_state(move.target)
    if state is not None and state.state == "aborted":
        return
    found = [(words, await count_rows(move.target, table)) for table, words in _USED.items()]
    used = ", ".join(f"{words}: {count:,}" for words, count in found if count)
    if used:
        raise Conflict(f"{move.target_name} is not empty ({used}). Choose an empty database")


async def _refuse_live(driver: Driver, name: str) -> None:
    nodes = [row["name"] for row in await driver.read(lambda tx: tx.rows("beating_nodes", SILENT_MS))]
    if nodes:
        raise StoreInUse(
            f"{name} is in use by {', '.join(nodes)}. Stop all nodes first; one that was killed counts as stopped after"
            f" {SILENT_MS // 1000} seconds"
        )


async def _complete(move: Moving, tables: Sequence[StoredTable], state: MoveState) -> None:
    """Numbers go on after the highest that was given, whether its row is still there or not."""
    numbers = {row["name"]: row["last"] for row in await move.source.read(lambda tx: tx.rows("last_numbers"))}
    for table in tables:
        if table.numbered:
            text = table.highest()
            (row,) = await move.source.read(lambda tx, text=text: tx.sql(text))  # type: ignore[misc]
            numbers[table.name] = max(numbers.get(table.name, 0), row["last"])
    given = {row["name"] for row in await move.target.read(lambda tx: tx.rows("last_numbers"))}

    async def body(tx: Transaction) -> None:
        for name, last in numbers.items():
            if last and name in given:
                await tx.rows("raise_sequence" if name in _SEQUENCES else "raise_identity", name, last)
        if move.target.dialect == "postgres":
            await tx.script("".join(f'ANALYZE "{table.name}";' for table in tables))
        await write_state(tx, msgspec.structs.replace(state, state="complete"))
        await tx.execute("drop_mark")

    await move.target.transact_slow(body)


async def _mark_moved(move: Moving, state: MoveState) -> None:
    now = await move.source.read(lambda tx: tx.now())
    moved = MoveState(id=state.id, state="moved", other=move.target_name, at=now)
    words = (
        f"this store was moved to {move.target_name} at {format_instant(now)}. Serve that one: --store"
        f" {move.target_name}"
    )
    await move.source.transact_slow(lambda tx: write_state(tx, moved, words))
