"""Many rows at once, straight into the tables of either database: what would take two weeks through the front door."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import asyncpg

__all__ = ["Tables", "open_tables"]


class Tables(Protocol):
    async def insert(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None: ...
    async def change(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """The statement for each row; its parameters are written as $1, $2 …"""

    async def rows(self, statement: str) -> list[tuple[Any, ...]]: ...
    async def close(self) -> None: ...


async def open_tables(url: str) -> Tables:
    if url.startswith("sqlite"):
        return _Sqlite(url.removeprefix("sqlite:///"))
    return _Postgres(await asyncpg.connect(url.partition("?")[0]))


class _Sqlite:
    def __init__(self, path: str) -> None:
        self._db = sqlite3.connect(Path(path), check_same_thread=False)
        self._db.execute("PRAGMA synchronous = OFF")  # if the power fails meanwhile, it is made again

    async def insert(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        places = ", ".join("?" * len(columns))
        await self.change(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)

    async def change(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        await asyncio.to_thread(self._change, statement.replace("$", "?"), rows)

    def _change(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._db:
            self._db.executemany(statement, rows)

    async def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self._db.execute(statement).fetchall()

    async def close(self) -> None:
        self._db.close()


class _Postgres:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._db = connection

    async def insert(self, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        await self._db.copy_records_to_table(table, columns=list(columns), records=rows)

    async def change(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        await self._db.executemany(statement, rows)

    async def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self._db.fetch(statement)]

    async def close(self) -> None:
        await self._db.close()
