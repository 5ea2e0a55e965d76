"""An SQLite file that another process has open, read from outside: never written, never locked, never checkpointed."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from onthedot.clock import Clock
from onthedot.errors import StoreError, StoreMissing, StoreUnavailable
from onthedot.store.driver import Transaction
from onthedot.store.queries import Queries
from onthedot.store.sqlite.connection import SqliteConnection, SqliteTransaction

__all__ = ["SqliteReader"]

T = TypeVar("T")


class SqliteReader:
    """What of a driver only reads. Each look opens the file anew: it may have been replaced since.

    Not for a process that has the file open itself: closing it here would drop the locks it has on it.
    """

    dialect = "sqlite"

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path.expanduser().absolute()
        self._clock = clock
        self.queries = Queries("sqlite", "now_ms()", now_us="now_us()")

    async def read(self, body: Callable[[Transaction], Awaitable[T]], *, watched: bool = False) -> T:
        if not self._path.exists():
            raise StoreMissing(f"SQLite store {self._path} does not exist")
        try:
            connection = SqliteConnection(self._connect, name="witness", threads=True)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"can't read {self._path}: {error}") from error
        try:
            return await body(SqliteTransaction(connection, self.queries, "BEGIN"))
        except sqlite3.DatabaseError as error:
            raise StoreError(f"can't read {self._path}: {error}") from error
        finally:
            connection.close()

    def _connect(self) -> sqlite3.Connection:
        """Without a log beside it nobody writes it, and SQLite could not make one for a reader: it is read as it is."""
        alone = not self._path.with_name(f"{self._path.name}-wal").exists()
        uri = f"{self._path.as_uri()}?{'immutable=1' if alone else 'mode=ro'}"
        raw = sqlite3.connect(uri, uri=True, isolation_level=None)
        raw.row_factory = sqlite3.Row
        raw.create_function("now_ms", 0, self._clock.now_ms)
        raw.create_function("now_us", 0, self._clock.now_us)
        raw.execute("PRAGMA busy_timeout = 5000")
        raw.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return raw

    async def close(self) -> None:
        """Nothing is open between two looks."""
