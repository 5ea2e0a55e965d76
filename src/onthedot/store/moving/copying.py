"""Copying the tables: in portions, each of which is one transaction of the target that also says how far it has come.

So a process that is killed at any moment goes on where it was, and no row is there twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from onthedot.errors import StoreError
from onthedot.store.cluster.partitions import make_for
from onthedot.store.driver import Driver, Transaction
from onthedot.store.moving.catalog import StoredTable, clearing, counting
from onthedot.store.moving.marks import MOVE, MoveState, write_state

__all__ = ["Progress", "check_counts", "clear_tables", "copy_tables", "count_rows"]

Progress = Callable[[str, int, int], None]
"""table, rows that are copied of it, rows that it has."""

PORTION_BYTES = 4 << 20
FIRST, FEWEST, MOST = 500, 20, 5000
"""Rows of a portion. Logs have 64 KB each, tags a few bytes."""


async def copy_tables(
    source: Driver, target: Driver, tables: Sequence[StoredTable], state: MoveState, tell: Progress
) -> MoveState:
    """What is not there yet; the state of the target when all is."""
    for table in tables:
        if table.name not in state.tables:
            state = await _copy_table(source, target, table, state, tell)
    return state


async def _copy_table(
    source: Driver, target: Driver, table: StoredTable, state: MoveState, tell: Progress
) -> MoveState:
    total, limit = await count_rows(source, table.name), FIRST
    if state.table != table.name:
        state = msgspec.structs.replace(state, table=table.name, rows=0, after=None)
    ours = target.dialect == "postgres"
    while True:
        tell(table.name, state.rows, total)
        rows = await _page(source, table, state.after, limit)
        ended = len(rows) < limit
        place = table.place_of(rows[-1]) if rows else state.after
        size = sum(len(value) for row in rows for value in row if isinstance(value, str)) + 1
        kept = [table.for_postgres(row) if ours else list(row) for row in rows if not _is_state(table, row)]
        state = msgspec.structs.replace(state, rows=state.rows + len(kept), after=place)
        if ended:
            done = {**state.tables, table.name: state.rows}
            state = msgspec.structs.replace(state, tables=done, table=None, rows=0, after=None)
        await _write(target, table, kept, state)
        if ended:
            tell(table.name, state.tables[table.name], total)
            return state
        limit = max(FEWEST, min(MOST, limit * PORTION_BYTES // size))


async def _page(source: Driver, table: StoredTable, after: Sequence[Any] | None, limit: int) -> list[list[Any]]:
    text = table.page(source.dialect, first=after is None)
    return [list(row) for row in await source.read(lambda tx: tx.sql(text, limit, *(after or ())))]


def _is_state(table: StoredTable, row: Sequence[Any]) -> bool:
    """The source's own note of the move."""
    return table.name == "installation" and row[table.columns.index("name")] == MOVE


async def _write(target: Driver, table: StoredTable, rows: Sequence[Sequence[Any]], state: MoveState) -> None:
    slots = table.columns.index("slot") if table.name == "history" and target.dialect == "postgres" else None

    async def body(tx: Transaction) -> None:
        if rows and slots is not None:
            await make_for(tx, [row[slots] for row in rows])
        if rows:
            await tx.fill(table.name, table.columns, rows)
        await write_state(tx, state)

    await target.transact_slow(body)


async def clear_tables(target: Driver, tables: Sequence[StoredTable]) -> None:
    """Nothing is in a target that counts: the default tenant, what duties noted, the remains of an aborted move."""
    script = clearing(tables, target.dialect)
    await target.transact_slow(lambda tx: tx.script(script))


async def check_counts(source: Driver, target: Driver, tables: Sequence[StoredTable], state: MoveState) -> None:
    """Both have the same rows, counted anew."""
    for table in tables:
        here, there = await count_rows(source, table.name), await count_rows(target, table.name)
        if not here == there == state.tables[table.name]:
            raise StoreError(
                f"table {table.name} has {here:,} rows in the source, {state.tables[table.name]:,} were copied and"
                f" {there:,} are in the target; neither store can be served. Give up with --abort, and report this"
            )


async def count_rows(driver: Driver, table: str) -> int:
    (row,) = await driver.read(lambda tx: tx.sql(counting(table)))
    return int(row["n"])
