"""PostgreSQL through asyncpg: prepared statements, a deadline on each call, trouble told apart from mistakes."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any, TypeVar

import asyncpg

from onthedot.clock import SystemClock
from onthedot.errors import StoreError, StoreUnsafe
from onthedot.store.driver import Collision, Row, Rows, Transaction
from onthedot.store.postgres.address import Address, parse_address
from onthedot.store.postgres.hints import CHANNEL, Listener, Notifier
from onthedot.store.postgres.trouble import AWAY, is_again, unavailable
from onthedot.store.queries import Queries

__all__ = ["NOW", "PostgresDriver"]

T = TypeVar("T")
NOW = "floor(extract(epoch from clock_timestamp()) * 1000)::bigint"  # a cast alone rounds: half a millisecond early
REPEATS = 8
KEPT = 4
"""Connections that are not given back to the pool after each use."""

IDLE = 3000
"""ms that a transaction of ours may wait for its client. A node that froze or lost its network between two statements
holds its locks until then: without this, a frozen node kept all others from recording for as long as it was frozen."""

SESSION = {
    "idle_in_transaction_session_timeout": str(IDLE),
    # Every statement is written so that its generic plan is the right one (the query-plan tests force it). Left to
    # choose, the planner plans a claim anew each time: 2.5 ms of server CPU for an empty claim instead of 0.7.
    "plan_cache_mode": "force_generic_plan",
}


class PostgresTransaction:
    """Named statements on one connection."""

    def __init__(self, connection: Any, queries: Queries, timeout: float) -> None:
        self.connection = connection
        self._queries = queries
        self._timeout = timeout

    async def rows(self, name: str, *args: Any) -> Sequence[Row]:
        return await self.sql(self._queries[name], *args)

    async def row(self, name: str, *args: Any) -> Row | None:
        found: Row | None = await self.connection.fetchrow(self._queries[name], *_flat(args), timeout=self._timeout)
        return found

    async def execute(self, name: str, *args: Any) -> int:
        status = await self.connection.execute(self._queries[name], *_flat(args), timeout=self._timeout)
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def execute_each(self, name: str, rows: Sequence[Sequence[Any]]) -> int:
        return sum([await self.execute(name, *row) for row in rows])

    async def copy(self, name: str, rows: Sequence[Sequence[Any]]) -> None:
        """Binary COPY: encoding a row takes 3 µs, as arrays for `unnest` 15."""
        table, columns = _copied(self._queries[name])
        await self.connection.copy_records_to_table(table, columns=columns, records=rows, timeout=self._timeout)

    async def now(self) -> int:
        row = await self.row("now")
        assert row is not None
        return int(row["now"])

    async def sql(self, text: str, *args: Any) -> Sequence[Row]:
        found: Sequence[Row] = await self.connection.fetch(text, *_flat(args), timeout=self._timeout)
        return found

    async def script(self, text: str) -> None:
        await self.connection.execute(text, timeout=None)


@lru_cache(maxsize=16)
def _copied(statement: str) -> tuple[str, list[str]]:
    """`COPY table (column, …) FROM STDIN`, taken apart: asyncpg puts it together again."""
    match = re.fullmatch(r"COPY (\w+) \(([\w\s,]+)\) FROM STDIN", statement)
    assert match is not None, statement
    return match[1], [column.strip() for column in match[2].split(",")]


def _flat(args: tuple[Any, ...]) -> list[Any]:
    flat: list[Any] = []
    for arg in args:
        if isinstance(arg, Rows):
            flat.extend(arg.columns())
        else:
            flat.append(arg)
    return flat


class PostgresDriver:
    """A pool of connections to one database; hints over one connection more."""

    dialect = "postgres"

    def __init__(self, address: Address, pool: Any, now: str) -> None:
        self.address = address
        self.queries = Queries("postgres", now)
        self._pool = pool
        self._notifier = Notifier(self._send)
        self._listeners: list[Listener] = []
        self._ending: set[asyncio.Future[None]] = set()
        self._kept: list[Any] = []  # connections at hand, taken from the pool
        self._waiting = 0
        self._closing = False

    @classmethod
    async def open(cls, url: str, *, now: str | None = None) -> PostgresDriver:
        """`now`: another SQL expression for the database's clock, so that tests can turn it."""
        address = parse_address(url)
        try:
            pool = await asyncpg.create_pool(
                address.dsn,
                min_size=1,
                max_size=address.pool,
                timeout=address.timeout,
                command_timeout=address.timeout,
                statement_cache_size=0 if address.pooled else 500,
                max_cached_statement_lifetime=0,
                reset=_keep,
                server_settings={} if address.pooled else SESSION,
            )
        except AWAY as error:
            raise unavailable(error) from error
        except (asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
            raise StoreError(f"the PostgreSQL store {address.shown()} can't be opened: {error}") from error
        driver = cls(address, pool, now or NOW)
        try:
            await driver._check_durable()
        except BaseException:
            await driver.close()
            raise
        return driver

    async def _check_durable(self) -> None:
        if self.address.unsafe:
            return
        async with self.transaction() as transaction:
            (row,) = await transaction.sql(
                "SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit"
            )
        off = [name for name in ("fsync", "synchronous_commit") if row[name] == "off"]
        if off:
            raise StoreUnsafe(
                f"PostgreSQL runs with {' and '.join(off)} off: what was acknowledged could be lost in a crash. "
                "Switch it on, or add ?unsafe=allow to the store's address if losing jobs is fine"
            )

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        try:
            connection = await self._acquire()
            try:
                yield connection
            except asyncpg.InterfaceError as error:  # a slip of ours, unless the connection went away
                gone = _gone(connection)
                await self._release(connection)
                if gone:
                    raise _away(ConnectionError("the connection was lost")) from error
                raise
            except BaseException:
                await self._release(connection)
                raise
            await self._keep(connection)
        except AWAY as error:
            raise _away(error) from error
        except asyncpg.InterfaceError as error:
            if self._pool.is_closing():
                raise unavailable(error) from error
            raise

    async def _acquire(self) -> Any:
        while self._kept:
            connection = self._kept.pop()
            if not _gone(connection):
                return connection
            await self._release(connection)
        self._waiting += 1
        try:
            return await self._pool.acquire(timeout=self.address.timeout)
        finally:
            self._waiting -= 1

    async def _keep(self, connection: Any) -> None:
        """For the next one, if nobody waits. Through the pool, taking and giving back cost 200 µs of CPU each time,
        more than a statement and its answer (130 µs)."""
        if self._waiting or len(self._kept) >= KEPT or self._closing:
            await self._release(connection)
        else:
            self._kept.append(connection)

    async def _release(self, connection: Any) -> None:
        """To its end even if the caller is cancelled. A connection that can't be given back in order is thrown away by
        the pool: that changes nothing about what was done on it."""

        async def release() -> None:
            with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, *AWAY):
                await self._pool.release(connection, timeout=self.address.timeout)

        self._ending.add(task := asyncio.ensure_future(release()))
        task.add_done_callback(self._ending.discard)
        await asyncio.shield(task)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self._connection() as connection, connection.transaction():
            if self.address.pooled:  # a pooler hands connections on: a setting of the session would go astray
                await connection.execute(f"SET LOCAL idle_in_transaction_session_timeout = {IDLE}")
            yield PostgresTransaction(connection, self.queries, self.address.timeout)

    async def write(self, body: Callable[[Transaction], Awaitable[T]]) -> T:
        async def attempt() -> T:
            async with self.transaction() as transaction:
                return await body(transaction)

        return await self._until_it_works(attempt)

    async def at_once(self, body: Callable[[Transaction], Awaitable[T]]) -> T:
        return await self.write(body)

    async def alone(self, name: str, *args: Any) -> Sequence[Row]:
        """Without BEGIN and COMMIT: one round trip instead of three."""
        if self.address.pooled:  # prepare and execute must reach the same server: only a transaction promises it
            return await self.write(lambda tx: tx.rows(name, *args))

        async def attempt() -> Sequence[Row]:
            async with self._connection() as connection:
                return await PostgresTransaction(connection, self.queries, self.address.timeout).rows(name, *args)

        return await self._until_it_works(attempt)

    async def _until_it_works(self, attempt: Callable[[], Awaitable[T]]) -> T:
        for left in reversed(range(REPEATS)):
            try:
                return await attempt()
            except asyncpg.PostgresError as error:
                if not is_again(error):
                    if isinstance(error, asyncpg.UniqueViolationError):
                        raise Collision(error.constraint_name) from error
                    raise
                if not left:
                    raise unavailable(error) from error
                await SystemClock().sleep(random.uniform(0, 0.02 * (REPEATS - left)))
        raise AssertionError("unreachable")

    async def read(self, body: Callable[[Transaction], Awaitable[T]]) -> T:
        if self.address.pooled:  # prepare and execute must reach the same server: only a transaction promises it
            return await self.write(body)
        try:
            async with self._connection() as connection:
                return await body(PostgresTransaction(connection, self.queries, self.address.timeout))
        except asyncpg.PostgresError as error:
            if not is_again(error):
                raise
            return await self.write(body)

    def listen(self, callback: Callable[[str], None]) -> Callable[[], None]:
        if self.address.pooled or not self.address.hints:
            return lambda: None
        listener = Listener(self._connect_listener, callback)
        self._listeners.append(listener)

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)
                self._ending.add(task := asyncio.ensure_future(listener.close()))
                task.add_done_callback(self._ending.discard)

        return end

    async def _connect_listener(self) -> Any:
        return await asyncpg.connect(self.address.dsn, timeout=self.address.timeout, statement_cache_size=0)

    async def notify(self, topic: str) -> None:
        if self.address.hints:
            self._notifier.notify(topic)

    async def _send(self, topic: str) -> None:
        try:
            async with self.transaction() as transaction:
                await transaction.sql("SELECT pg_notify($1, $2)", CHANNEL, topic)
        except (StoreError, asyncpg.PostgresError):
            pass  # a hint may be lost: everybody polls

    async def close(self) -> None:
        await self._notifier.close()
        for listener in self._listeners:
            await listener.close()
        self._listeners.clear()
        self._closing = True
        while self._kept:
            await self._release(self._kept.pop())
        await asyncio.gather(*self._ending)
        try:
            await asyncio.wait_for(self._pool.close(), 5)
        except TimeoutError:
            self._pool.terminate()


def _away(error: BaseException) -> BaseException:
    """What to raise for it. When the connection broke, the rollback of a caller who is being cancelled fails too: that
    must not take the place of the cancellation, or a loop that was told to end takes it for trouble and goes on. (A
    node that was to let go of everything hung so for 46 s, until it was killed.)"""
    task = asyncio.current_task()
    return asyncio.CancelledError() if task is not None and task.cancelling() else unavailable(error)


def _gone(connection: Any) -> bool:
    """A connection that broke has been taken away from its holder, and then refuses even this question."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


async def _keep(connection: Any) -> None:
    """Nothing to reset: we leave no session state behind, and the default would cost a round trip per transaction."""
