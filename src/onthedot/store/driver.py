"""What a database must be able to do for us: run named statements in transactions, and pass on hints.

Statements live by name in `sqlite/queries/*.sql` and `postgres/queries/*.sql`: the same names, the same arguments, the
same answers. Where one database needs fewer round trips than the other the store asks for `dialect`: PostgreSQL can
write into two tables by one statement (creates, beats, finishes), SQLite has no partitions.

Beside those files SQL stands only where names of tables and columns are part of it, which can't be parameters
(`cluster/partitions.py`, `moving/catalog.py`, and the rows that `shapes.py` spells out), in the script that
`migration_script.py` prints, and in `sqlite/` and `postgres/` for what a driver does itself: opening, copying and
watching a database.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

from onthedot.model.alerts import Alerting
from onthedot.store.queries import Queries
from onthedot.store.shapes import Shape

__all__ = ["HINTS", "Collision", "Driver", "Row", "Transaction"]

T = TypeVar("T")

HINTS = ("due", "orders", "operations", "alerts")
"""The topics there are. After a listener reconnects, it gets one of each: whatever was said meanwhile is lost."""


class Collision(Exception):
    """A unique index refused a row: somebody else was first."""


class Row(Protocol):
    """`row["column"]`. Booleans are 0/1 on SQLite: take `bool(row["one_off"])`."""

    def __getitem__(self, column: str, /) -> Any: ...

    def __iter__(self) -> Iterator[Any]:
        """Its values, in the order of the statement: a shape is made of them, if the statement names one."""
        ...


class Transaction(Protocol):
    """Statements by name. `"list_jobs+by_tag"` is a statement with a fragment put into it (see `queries`)."""

    @property
    def lookahead(self) -> int:
        """How many ms before its instant a run may be claimed: what the store was opened with."""
        ...

    @property
    def alerting(self) -> Alerting:
        """What the settings say of alerts: what the store was opened with."""
        ...

    async def rows(self, name: str, *args: Any) -> Sequence[Row]: ...

    async def row(self, name: str, *args: Any) -> Row | None: ...

    async def execute(self, name: str, *args: Any) -> int:
        """The number of rows touched."""
        ...

    async def execute_each(self, name: str, rows: Sequence[Shape], *before: Any) -> int:
        """The statement once for each of the rows, the last of its arguments. The number of rows touched in all."""
        ...

    async def copy(self, name: str, rows: Sequence[Shape]) -> None:
        """Add many rows that nothing can refuse, by the shortest way in. The statement names table and columns."""
        ...

    async def fill(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Add rows of any table as they come from another database: for moving a store. Lists are arrays, or JSON."""
        ...

    async def breathe(self) -> None:
        """Between two portions of computing: if that is done on the caller's loop, others have their turn there."""
        ...

    async def now(self) -> int:
        """The database's clock, in ms. Ask after a lock was waited for, not before."""
        ...

    async def sql(self, text: str, *args: Any) -> Sequence[Row]:
        """Any statement. For migrations and tests: everything else has a name."""
        ...

    async def script(self, text: str) -> None:
        """Several statements without arguments: a migration."""
        ...


class Driver(Protocol):
    """One database."""

    dialect: str  # "sqlite" | "postgres": names the folder of queries and migrations
    queries: Queries

    async def make_room(self) -> None:
        """Before the first table is made: the place for it, where the address names one that is not there."""
        ...

    async def check_room(self) -> None:
        """StoreError if the tables that are missing could not be made; makes nothing itself."""
        ...

    async def check_lineage(self) -> None:
        """After the tables are there: note which history of the database this is (see `postgres.lineage`)."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that writes: committed at the end, rolled back on any exception. Connection trouble comes out
        as StoreUnavailable; deadlocks come out as they are (`transact` repeats them)."""
        ...

    async def transact_slow(self, body: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run `body` in a transaction, whatever it waits for; deadlocks and serialization failures run it again, so it
        must start afresh. What a unique index refuses comes out as Collision."""
        ...

    async def transact(self, body: Callable[[Transaction], Awaitable[T]], *, repeatable: bool = False) -> T:
        """The same for a `body` that waits for nothing but its transaction and touches nothing that others touch
        meanwhile: on SQLite all of it happens in the writer's thread, in one go.

        `repeatable`: the caller asks again and no harm is done if it was carried out before. Then a way to the database
        that has gone silent is given up after a moment, instead of as late as a call that must not be repeated."""
        ...

    async def statement(self, name: str, *args: Any, repeatable: bool = False) -> Sequence[Row]:
        """One statement that is a transaction of its own. `repeatable`: as above."""
        ...

    async def read(
        self, body: Callable[[Transaction], Awaitable[T]], *, watched: bool = False, snapshot: bool = False
    ) -> T:
        """Run `body`, which only reads, without standing in the way of those who write. `watched`: it is quick, and the
        caller asks again: a way to the database that has gone silent is given up as for what is `repeatable`.
        `snapshot`: all its statements see the same moment, for a body that looks for something in several places
        between which it may move. (On SQLite each read is one. On PostgreSQL it costs two more round trips.)"""
        ...

    def listen(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back with the topic of every hint. Returns what ends it."""
        ...

    async def notify(self, topic: str) -> None:
        """Hint to all nodes, soon and perhaps never; never waits for the database."""
        ...

    async def close(self) -> None: ...
