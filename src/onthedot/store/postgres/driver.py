"""PostgreSQL through asyncpg: prepared statements, a deadline on each call, trouble told apart from mistakes."""

from __future__ import annotations

import asyncio
import os
import random
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import asyncpg

from onthedot.clock import SystemClock
from onthedot.errors import StoreError, StoreUnsafe
from onthedot.store.driver import Collision, Row, Transaction
from onthedot.store.postgres.address import Address, parse_address
from onthedot.store.postgres.arrays import tell_arrays
from onthedot.store.postgres.connecting import PostgresConnector
from onthedot.store.postgres.connections import StoreConnections
from onthedot.store.postgres.errors import AWAY, is_again, unavailable
from onthedot.store.postgres.hints import CHANNEL, HintListener, Notifier
from onthedot.store.postgres.limits import limit_transactions
from onthedot.store.postgres.lineage import Lineage
from onthedot.store.postgres.preparing import Preparer
from onthedot.store.postgres.process_name import name_process
from onthedot.store.postgres.schema import FORBIDDEN, Room
from onthedot.store.postgres.transaction import PostgresTransaction, flat
from onthedot.store.queries import Queries

__all__ = ["NOW", "PostgresDriver"]

T = TypeVar("T")
NOW = "floor(extract(epoch from clock_timestamp()) * 1000)::bigint"  # a cast alone rounds: half a millisecond early
NOW_US = "floor(extract(epoch from clock_timestamp()) * 1000000)::bigint"
REPEATS = 8
IDLE = 3000
"""ms that a transaction of ours may wait for its client. A node that froze or lost its network between two statements
holds its locks until then: without this, a frozen node kept all others from recording for as long as it was frozen."""

SESSION = {
    "idle_in_transaction_session_timeout": str(IDLE),
    # Every statement is written so that its generic plan is the right one (the query-plan tests force it). Left to
    # choose, the planner plans a claim anew each time: 2.5 ms of server CPU for an empty claim instead of 0.7.
    "plan_cache_mode": "force_generic_plan",
    # Nothing here runs long enough to be worth compiling, but a generic plan that takes a job's few runs for a two
    # hundredth of the table looks like it.
    "jit": "off",
    # A plan is made when a connection first needs it, perhaps on empty tables, and stays until autovacuum has looked at
    # them: until then each claim read a few thousand jobs and runs from end to end. At 300 firings a second on five
    # nodes that was half a million rows a second instead of 35,000, and half as much again of the server's CPU.
    "enable_seqscan": "off",
}


class PostgresDriver:
    """A pool of connections to one database; hints over one connection more."""

    dialect = "postgres"

    def __init__(self, address: Address, pool: Any, now: str, connector: PostgresConnector, lineage: Lineage) -> None:
        self.address = address
        self._connector = connector
        self._lineage = lineage
        self._looked_at = 0.0
        self.queries = Queries("postgres", now, now_us=NOW_US if now is NOW else None)
        self._preparer = Preparer()
        self._connections = StoreConnections(pool, address.timeout)
        self._room = Room(address, self.transaction)
        self._notifier = Notifier(self._send)
        self._settings = _local_settings(address)
        self._listeners: list[HintListener] = []

    @classmethod
    async def open(cls, url: str, *, now: str | None = None) -> PostgresDriver:
        """`now`: another SQL expression for the database's clock, so that tests can turn it."""
        address = parse_address(url)
        connector, lineage = PostgresConnector(address), Lineage()

        async def begin(connection: Any) -> None:
            try:
                await tell_arrays(connection)
                if address.pooled:
                    async with connection.transaction():
                        await connection.execute(_local_settings(address))
                        await lineage.check(connection)
                else:
                    await connection.execute(limit_transactions(address))
                    await lineage.check(connection)
            except asyncpg.InterfaceError as error:
                if not connection.is_closed():
                    raise
                raise ConnectionError("connection lost during setup") from error

        session = _named(address)
        if not address.pooled:
            session |= SESSION if address.schema is None else {**SESSION, "search_path": str(address.search_path)}
        try:
            pool = await asyncpg.create_pool(
                address.dsn,
                connect=connector.connect,
                min_size=1,
                max_size=address.pool,
                timeout=address.timeout,
                command_timeout=address.timeout,
                statement_cache_size=0 if address.pooled else 500,
                max_cached_statement_lifetime=0,
                init=begin,
                reset=_keep,
                server_settings=session,
            )
        except AWAY as error:
            raise unavailable(error) from error
        except (asyncpg.PostgresError, asyncpg.InterfaceError, ValueError) as error:
            raise StoreError(f"can't open the PostgreSQL store {address.shown()}: {error}") from error
        driver = cls(address, pool, now or NOW, connector, lineage)
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
                f"PostgreSQL runs with {' and '.join(off)} off, so a crash could lose acknowledged writes. "
                "Turn it on, or add ?unsafe=allow to the store URL to accept that"
            )

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self._connections.use() as connection, self._begun(connection) as transaction:
            yield transaction

    @asynccontextmanager
    async def _begun(
        self, connection: Any, *, snapshot: bool = False, used: dict[str, None] | None = None
    ) -> AsyncIterator[Transaction]:
        kind: dict[str, Any] = {"isolation": "repeatable_read", "readonly": True} if snapshot else {}
        try:
            async with connection.transaction(**kind):
                if self.address.pooled:  # a pooler hands connections on: a setting of the session would go astray
                    await connection.execute(self._settings)
                    if not snapshot:  # which could not note it
                        await self._look_at_lineage(connection)
                yield PostgresTransaction(connection, self.queries, self.address.timeout, used)
        except BaseException:
            self._looked_at = 0.0
            raise

    async def _look_at_lineage(self, connection: Any) -> None:
        """A pooler connects again without telling us: once a second, and after trouble, is asked where we are."""
        now = asyncio.get_running_loop().time()
        if now - self._looked_at >= 1:
            self._looked_at = now
            await self._lineage.check(connection)

    async def check_lineage(self) -> None:
        async with self._connections.use() as connection, self._begun(connection):
            await self._lineage.check(connection)

    async def transact_slow(self, body: Callable[[Transaction], Awaitable[T]]) -> T:
        return await self.transact(body)

    async def transact(self, body: Callable[[Transaction], Awaitable[T]], *, repeatable: bool = False) -> T:
        used = self._preparer.used_by(body)

        async def attempt() -> T:
            async with self._connections.use(watched=repeatable) as connection:
                if not self.address.pooled:  # a pooler hands connections on: nothing stays prepared
                    await self._preparer.prepare(connection, body, self.address.timeout)
                async with self._begun(connection, used=used) as transaction:
                    return await body(transaction)

        return await self._until_it_works(attempt)

    async def statement(self, name: str, *args: Any, repeatable: bool = False) -> Sequence[Row]:
        """Without BEGIN and COMMIT: one round trip instead of three."""
        if self.address.pooled:  # prepare and execute must reach the same server: only a transaction promises it
            return await self.transact(lambda tx: tx.rows(name, *args), repeatable=repeatable)
        text, given = self.queries[name], flat(args)

        async def attempt() -> Sequence[Row]:
            async with self._connections.use(watched=repeatable) as connection:
                found: Sequence[Row] = await connection.fetch(text, *given, timeout=self.address.timeout)
                return found

        return await self._until_it_works(attempt)

    async def _until_it_works(self, attempt: Callable[[], Awaitable[T]]) -> T:
        for left in reversed(range(REPEATS)):
            try:
                return await attempt()
            except asyncpg.PostgresError as error:
                if isinstance(error, FORBIDDEN):
                    raise await self._room.forbidden(error) from error
                if not is_again(error):
                    if isinstance(error, asyncpg.UniqueViolationError):
                        raise Collision(error.constraint_name) from error
                    raise
                if not left:
                    raise unavailable(error) from error
                await SystemClock().sleep(random.uniform(0, 0.02 * (REPEATS - left)))
        raise AssertionError("unreachable")

    async def read(
        self, body: Callable[[Transaction], Awaitable[T]], *, watched: bool = False, snapshot: bool = False
    ) -> T:
        if snapshot:
            return await self._read_snapshot(body, watched=watched)
        if self.address.pooled:  # prepare and execute must reach the same server: only a transaction promises it
            return await self.transact(body, repeatable=watched)
        try:
            async with self._connections.use(watched=watched) as connection:
                return await body(PostgresTransaction(connection, self.queries, self.address.timeout))
        except asyncpg.PostgresError as error:
            if isinstance(error, FORBIDDEN):
                raise await self._room.forbidden(error) from error
            if not is_again(error):
                raise
            return await self.transact(body, repeatable=watched)

    async def _read_snapshot(self, body: Callable[[Transaction], Awaitable[T]], *, watched: bool) -> T:
        async def attempt() -> T:
            async with (
                self._connections.use(watched=watched) as connection,
                self._begun(connection, snapshot=True) as transaction,
            ):
                return await body(transaction)

        return await self._until_it_works(attempt)

    async def make_room(self) -> None:
        await self._room.make()

    async def check_room(self) -> None:
        await self._room.check()

    def listen(self, callback: Callable[[str], None]) -> Callable[[], None]:
        if self.address.pooled or not self.address.hints:
            return lambda: None
        listener = HintListener(self._connect_listener, callback)
        self._listeners.append(listener)

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)
                self._connections.in_background(listener.close())

        return end

    async def _connect_listener(self) -> Any:
        named = _named(self.address)
        return await self._connector.connect(
            timeout=self.address.timeout, statement_cache_size=0, server_settings=named
        )

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
        await self._connections.close()


def _named(address: Address) -> dict[str, str]:
    return {"application_name": name_process(address.application_name, socket.gethostname(), os.getpid())}


def _local_settings(address: Address) -> str:
    """What SESSION can't say behind a pooler."""
    path = "" if address.schema is None else f"; SET LOCAL search_path = {address.search_path}"
    return f"SET LOCAL idle_in_transaction_session_timeout = {IDLE}{path}; {limit_transactions(address, here=True)}"


async def _keep(connection: Any) -> None:
    """Nothing to reset: we leave no session state behind, and the default would cost a round trip per transaction."""
