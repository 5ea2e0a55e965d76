"""One SQLite connection and the one thread it lives in. What is asked of it happens in the order it was asked."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from onthedot.errors import StoreError, StoreUnavailable
from onthedot.model.alerts import Alerting
from onthedot.store.driver import Collision, Row
from onthedot.store.queries import Queries
from onthedot.store.shapes import Rows, Shape, spread

__all__ = ["DirectTransaction", "SqliteConnection", "SqliteTransaction", "run_through"]

T = TypeVar("T")

_AWAY = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PROTOCOL,
}


class SqliteConnection:
    """`run` does something with the connection in its thread; without threads, at once (simulation, fake clock)."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], *, name: str, threads: bool) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"onthedot-{name}") if threads else None
        self._raw = self._thread.submit(connect).result() if self._thread else connect()

    @property
    def inline(self) -> bool:
        """There is no thread: what is asked happens at once, and nobody comes in between."""
        return self._thread is None

    async def run(self, act: Callable[[sqlite3.Connection], T]) -> T:
        if self._thread is None:
            return self._guarded(act)
        return await asyncio.wrap_future(self._thread.submit(self._guarded, act))

    def send(self, act: Callable[[sqlite3.Connection], object]) -> None:
        """Do it after all that was asked before, without waiting: for what must happen even if we are cancelled."""
        if self._thread is None:
            self._guarded(act)
        else:
            self._thread.submit(self._guarded, act)

    def _guarded(self, act: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return act(self._raw)
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _AWAY:
                raise StoreUnavailable(f"the SQLite store is temporarily unavailable: {error}") from error
            raise
        except sqlite3.IntegrityError as error:
            if error.sqlite_errorcode in (sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY):
                raise Collision(str(error)) from error
            raise
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
                raise StoreError(f"can't read the SQLite file: {error}. Restore it from a backup") from error
            raise

    def close(self) -> None:
        if self._thread is None:
            self._raw.close()
        else:
            closing: Future[None] = self._thread.submit(self._raw.close)
            closing.result()
            self._thread.shutdown()


class SqliteTransaction:
    """Named statements on one connection. BEGIN travels with the first of them: one hop between threads less."""

    def __init__(self, connection: SqliteConnection, queries: Queries, begin: str | None) -> None:
        """begin None: each statement for itself."""
        self._connection = connection
        self._queries = queries
        self._begin = begin or ""
        self.begun = begin is None

    @property
    def lookahead(self) -> int:
        return self._queries.lookahead

    @property
    def alerting(self) -> Alerting:
        return self._queries.alerting

    async def _run(self, act: Callable[[sqlite3.Connection], T]) -> T:
        if self.begun:
            return await self._connection.run(act)
        self.begun = True

        def first(raw: sqlite3.Connection) -> T:
            raw.execute(self._begin)
            return act(raw)

        return await self._connection.run(first)

    async def rows(self, name: str, *args: Any) -> Sequence[Row]:
        return await self.sql(self._queries[name], *args)

    async def row(self, name: str, *args: Any) -> Row | None:
        found = await self.sql(self._queries[name], *args)
        return found[0] if found else None

    async def execute(self, name: str, *args: Any) -> int:
        statement, values = self._queries[name], _values(args)
        return await self._run(lambda raw: max(raw.execute(statement, values).rowcount, 0))

    async def execute_each(self, name: str, rows: Sequence[Shape], *before: Any) -> int:
        statement = self._queries[name]
        values = [(*before, *spread(row)) for row in rows] if before else list(map(spread, rows))
        return await self._run(lambda raw: max(raw.executemany(statement, values).rowcount, 0))

    async def copy(self, name: str, rows: Sequence[Shape]) -> None:
        await self.execute_each(name, rows)

    async def fill(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        names, places = ", ".join(f'"{column}"' for column in columns), ", ".join("?" * len(columns))
        statement = f'INSERT INTO "{table}" ({names}) VALUES ({places})'  # noqa: S608
        values = [[_value(value) for value in row] for row in rows]
        await self._run(lambda raw: raw.executemany(statement, values))

    async def breathe(self) -> None:
        await asyncio.sleep(0)

    async def now(self) -> int:
        row = await self.row("now")
        assert row is not None
        return int(row["now"])

    async def sql(self, text: str, *args: Any) -> Sequence[Row]:
        values = _values(args)
        return await self._run(lambda raw: raw.execute(text, values).fetchall())

    async def script(self, text: str) -> None:
        def each(raw: sqlite3.Connection) -> None:
            for statement in _statements(text):
                raw.execute(statement)

        await self._run(each)


class DirectTransaction(SqliteTransaction):
    """For whoever is in the connection's thread already: nothing is waited for."""

    def __init__(self, raw: sqlite3.Connection, queries: Queries) -> None:
        self._raw = raw
        self._queries = queries

    async def breathe(self) -> None:
        """Nobody waits for us in this thread."""

    async def _run(self, act: Callable[[sqlite3.Connection], T]) -> T:
        return act(self._raw)

    async def rows(self, name: str, *args: Any) -> Sequence[Row]:
        return self._raw.execute(self._queries[name], _values(args)).fetchall()

    async def row(self, name: str, *args: Any) -> Row | None:
        found = self._raw.execute(self._queries[name], _values(args)).fetchall()
        return found[0] if found else None

    async def execute(self, name: str, *args: Any) -> int:
        return max(self._raw.execute(self._queries[name], _values(args)).rowcount, 0)

    async def sql(self, text: str, *args: Any) -> Sequence[Row]:
        return self._raw.execute(text, _values(args)).fetchall()


def run_through(body: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that only waits for a DirectTransaction, that is, for nothing."""
    try:
        body.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    body.close()
    raise RuntimeError("it waits for something other than its transaction")


def _values(args: tuple[Any, ...]) -> list[Any]:
    """A row that is an argument comes last (see `shapes`), so its columns are the last values."""
    if args and isinstance(args[-1], Shape):
        return [*map(_value, args[:-1]), *spread(args[-1])]
    return [arg if type(arg) in _PLAIN else _value(arg) for arg in args]


_PLAIN = {int, str, bool, float, bytes, type(None)}


def _value(arg: Any) -> Any:
    if isinstance(arg, Rows):
        return msgspec.json.encode(arg.rows).decode()
    if isinstance(arg, (list, tuple)):
        return msgspec.json.encode(arg).decode()
    return arg


def _statements(script: str) -> list[str]:
    """sqlite3's own executescript would commit what the transaction did so far."""
    statements, current = [], ""
    for piece in script.split(";")[:-1]:
        current += piece + ";"
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return statements
