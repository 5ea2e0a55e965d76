"""Which tables a store has, and their columns: asked of both databases, so that a table that is added is moved, too.

Tables and columns can't be parameters: their names are put into statements here, and come from the databases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from onthedot.errors import StoreError
from onthedot.store.driver import Driver, Transaction
from onthedot.store.moving.marks import MOVE

__all__ = ["LEFT_BEHIND", "REFERRED_TO", "StoredTable", "clearing", "common_tables", "counting"]

LEFT_BEHIND = {
    "meta": "which migrations this database has",
    "nodes": "processes that are stopped by now; those that start register themselves",
    "duties": "which of those processes works for all",
    "lineage": "by which nodes tell that this database failed over",
    "sequences": "carried over as numbers: the target goes on after the highest",
}
"""What belongs to a database and its processes, not to the jobs, and why it is not copied."""

REFERRED_TO = ("tenants", "api_keys")
"""Others refer to their rows."""

_IDS = msgspec.json.Decoder(list[int])


class StoredTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table that both databases have. `converted`: by place, what PostgreSQL calls a column that SQLite has not."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    converted: dict[int, str]
    numbered: bool  # its key is one number that the database gives

    def page(self, dialect: str, *, first: bool) -> str:
        """Rows after a place in the order of the key. The order is that of the database that is read."""
        names, key = ", ".join(map(_quoted, self.columns)), ", ".join(map(_quoted, self.key))
        mark = "?" if dialect == "sqlite" else "$"
        places = ", ".join(f"{mark}{number}" for number in range(2, len(self.key) + 2))
        after = "" if first else f"WHERE ({key}) > ({places})"
        return f"SELECT {names} FROM {_quoted(self.name)} {after} ORDER BY {key} LIMIT {mark}1"  # noqa: S608

    def highest(self) -> str:
        """The highest number that it has, as `last`."""
        return f"SELECT coalesce(max(id), 0) AS last FROM {_quoted(self.name)}"  # noqa: S608

    def place_of(self, row: Sequence[Any]) -> list[Any]:
        return [row[self.columns.index(column)] for column in self.key]

    def for_postgres(self, row: Sequence[Any]) -> list[Any]:
        """SQLite has no booleans and no arrays; PostgreSQL stores no NUL."""
        values = [v.replace("\x00", "\ufffd") if isinstance(v, str) and "\x00" in v else v for v in row]
        for place, kind in self.converted.items():
            if values[place] is not None:
                values[place] = bool(values[place]) if kind == "boolean" else _IDS.decode(values[place])
        return values


def counting(table: str) -> str:
    """Its rows, as `n`; without the note of a move."""
    but = f" WHERE name <> '{MOVE}'" if table == "installation" else ""
    return f"SELECT count(*) AS n FROM {_quoted(table)}{but}"  # noqa: S608


def clearing(tables: Sequence[StoredTable], dialect: str) -> str:
    """A script that takes all rows away."""
    names = [_quoted(table.name) for table in reversed(tables)]
    if dialect == "postgres":
        return f"TRUNCATE {', '.join(names)};"
    return "".join(f"DELETE FROM {name};" for name in names)  # noqa: S608


async def common_tables(source: Driver, target: Driver) -> list[StoredTable]:
    """All tables to move, those first that others refer to. PostgreSQL's schema may hold tables of other programs: the
    SQLite file says which are ours."""
    sqlite, postgres = (source, target) if source.dialect == "sqlite" else (target, source)
    ours = await _columns(sqlite, [name for name in await _names(sqlite) if name not in LEFT_BEHIND])
    theirs = await _columns(postgres, list(ours))
    tables = []
    for name, columns in ours.items():
        kinds = {column: kind for column, kind, _ in theirs[name]}
        if set(kinds) != {column for column, _, _ in columns}:
            raise StoreError(f"the two stores differ in table {name}; migrate both with the same version of On the Dot")
        key = [column for _, column in sorted((place, column) for column, _, place in columns if place)]
        tables.append(
            StoredTable(
                name=name,
                columns=tuple(column for column, _, _ in columns),
                key=tuple(key),
                converted={
                    place: kinds[column]
                    for place, (column, _, _) in enumerate(columns)
                    if kinds[column] not in ("bigint", "text")
                },
                numbered=key == ["id"] and kinds["id"] == "bigint",
            )
        )
    tables.sort(key=lambda table: (table.name not in REFERRED_TO, table.name not in REFERRED_TO[:1], table.name))
    return tables


async def _names(driver: Driver) -> list[str]:
    return [row["name"] for row in await driver.read(lambda tx: tx.rows("stored_tables"))]


async def _columns(driver: Driver, tables: Sequence[str]) -> dict[str, list[tuple[str, str, int]]]:
    async def body(tx: Transaction) -> dict[str, list[tuple[str, str, int]]]:
        return {
            name: [(row["name"], row["type"], row["key"]) for row in await tx.rows("stored_columns", name)]
            for name in tables
        }

    return await driver.read(body)


def _quoted(name: str) -> str:
    return f'"{name}"'
