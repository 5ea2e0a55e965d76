"""Named statements on one connection, with their arguments laid out as PostgreSQL wants them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from onthedot.model.alerts import Alerting
from onthedot.store.driver import Row
from onthedot.store.postgres.limits import transaction_timeout
from onthedot.store.queries import Queries
from onthedot.store.shapes import Rows, Shape, spread

__all__ = ["PostgresTransaction", "flat"]

HOWEVER_LONG = 7 * 24 * 3600.0
"""Seconds. None would mean the deadline of all calls: a migration of a large table was given up after ten seconds."""


class PostgresTransaction:
    def __init__(self, connection: Any, queries: Queries, timeout: float, used: dict[str, None] | None = None) -> None:
        """`used`: where to note what is executed."""
        self.connection = connection
        self._queries = queries
        self._timeout = timeout
        self._used = used if used is not None else {}

    @property
    def lookahead(self) -> int:
        return self._queries.lookahead

    @property
    def alerting(self) -> Alerting:
        return self._queries.alerting

    async def rows(self, name: str, *args: Any) -> Sequence[Row]:
        return await self.sql(self._queries[name], *args)

    async def row(self, name: str, *args: Any) -> Row | None:
        text = self._queries[name]
        self._used[text] = None
        found: Row | None = await self.connection.fetchrow(text, *flat(args), timeout=self._timeout)
        return found

    async def execute(self, name: str, *args: Any) -> int:
        text, given = self._queries[name], flat(args)
        if given:  # without arguments nothing is prepared
            self._used[text] = None
        status = await self.connection.execute(text, *given, timeout=self._timeout)
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def execute_each(self, name: str, rows: Sequence[Shape], *before: Any) -> int:
        return sum([await self.execute(name, *before, row) for row in rows])

    async def copy(self, name: str, rows: Sequence[Shape]) -> None:
        """Binary COPY: encoding a row takes 3 µs, as arrays for `unnest` 15."""
        table, columns = _copied(self._queries[name])
        records = list(map(spread, rows))
        await self.connection.copy_records_to_table(table, columns=columns, records=records, timeout=self._timeout)

    async def fill(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        await self.connection.copy_records_to_table(table, columns=columns, records=rows, timeout=self._timeout)

    async def breathe(self) -> None:
        await asyncio.sleep(0)

    async def now(self) -> int:
        row = await self.row("now")
        assert row is not None
        return int(row["now"])

    async def sql(self, text: str, *args: Any) -> Sequence[Row]:
        self._used[text] = None
        found: Sequence[Row] = await self.connection.fetch(text, *flat(args), timeout=self._timeout)
        return found

    async def script(self, text: str) -> None:
        """However long it takes."""
        if self.connection.is_in_transaction():
            await self.connection.execute(transaction_timeout(0, here=True), timeout=self._timeout)
        await self.connection.execute(text, timeout=HOWEVER_LONG)


@lru_cache(maxsize=16)
def _copied(statement: str) -> tuple[str, list[str]]:
    """`COPY table (column, …) FROM STDIN`, taken apart: asyncpg puts it together again."""
    match = re.fullmatch(r"COPY (\w+) \(([\w\s,]+)\) FROM STDIN", statement)
    assert match is not None, statement
    return match[1], [column.strip() for column in match[2].split(",")]


def flat(args: tuple[Any, ...]) -> list[Any]:
    """Rows become one array for each column, a Shape its values."""
    flat: list[Any] = []
    for arg in args:
        if isinstance(arg, Rows):
            flat.extend(arg.columns())
        elif isinstance(arg, Shape):
            flat.extend(spread(arg))
        else:
            flat.append(arg)
    return flat
