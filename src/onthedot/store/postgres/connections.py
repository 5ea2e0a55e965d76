"""Who has which connection: taken for a transaction or a statement, kept at hand for the next, hung up when silent."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Any

import asyncpg

from onthedot.store.postgres.errors import AWAY, unavailable

__all__ = ["KEPT", "PATIENCE", "ConnectionUse", "StoreConnections"]

KEPT = 4
"""Connections that are not given back to the pool after each use."""

PATIENCE = 1.5
"""Seconds that the answer to a call which may be repeated is waited for. If none comes, this way to the database is
given up and the next try takes a new one: what waits behind it to be recorded is sent again if the node dies meanwhile.
Doubled each time, up to the deadline of all calls, so that a database which is merely slow gets through."""


class StoreConnections:
    """`async with connections.use() as connection`. Connection trouble comes out as StoreUnavailable."""

    def __init__(self, pool: Any, timeout: float) -> None:
        self._pool = pool
        self._timeout = timeout
        self._kept: list[Any] = []  # at hand, taken from the pool
        self._ending: set[asyncio.Future[None]] = set()
        self._waiting = 0
        self._closing = False
        self._patience = min(PATIENCE, timeout)

    def use(self, *, watched: bool = False) -> ConnectionUse:
        """`watched`: hung up when all that is done on it takes longer than our patience. (No scope that cancels: the
        rollback would wait for the same silence.) At the end of our patience it is the deadline of each call that
        counts, which also tells the server to stop: nothing piles up there before a lock."""
        return ConnectionUse(self, self._patience if watched and self._patience < self._timeout else None)

    def in_background(self, ending: Any) -> asyncio.Future[None]:
        """Waited for when all is closed."""
        task: asyncio.Future[None] = asyncio.ensure_future(ending)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def close(self) -> None:
        self._closing = True
        while self._kept:
            await self._release(self._kept.pop())
        await asyncio.gather(*self._ending)
        try:
            await asyncio.wait_for(self._pool.close(), 5)
        except TimeoutError:
            self._pool.terminate()

    async def _acquire(self) -> Any:
        while self._kept:
            connection = self._kept.pop()
            if not _gone(connection):
                return connection
            await self._release(connection)
        self._waiting += 1
        try:
            return await self._pool.acquire(timeout=self._timeout)
        finally:
            self._waiting -= 1

    async def _give_back(self, connection: Any) -> None:
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
                await self._pool.release(connection, timeout=self._timeout)

        await asyncio.shield(self.in_background(release()))

    def _answered(self, seconds: float) -> None:
        if seconds < PATIENCE / 2:
            self._patience = min(PATIENCE, self._timeout)

    def _hang_up(self, connection: Any) -> None:
        """And let go of those that lie ready: they go the same way."""
        self._patience = min(2 * self._patience, self._timeout)
        self._drop_all(connection)

    def _leave_standby(self, connection: Any) -> None:
        """The primary has become a standby under us: by way of a new connection the new primary may be found."""
        self._drop_all(connection)

    def _drop_all(self, connection: Any) -> None:
        for silent in (connection, *self._kept):
            if not _gone(silent):
                silent.terminate()
        self.in_background(self._pool.expire_connections())


class ConnectionUse:
    """One connection for a while. A class and not a generator: every statement goes through it."""

    __slots__ = ("_began", "_connection", "_connections", "_patience", "_watch")

    def __init__(self, connections: StoreConnections, patience: float | None) -> None:
        self._connections = connections
        self._patience = patience
        self._watch: asyncio.TimerHandle | None = None
        self._began = 0.0

    async def __aenter__(self) -> Any:
        connections = self._connections
        try:
            self._connection = connection = await connections._acquire()
        except AWAY as error:
            raise _away(error) from error
        except asyncpg.InterfaceError as error:
            if connections._pool.is_closing():
                raise unavailable(error) from error
            raise
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        if self._patience is not None:
            self._watch = loop.call_later(self._patience, connections._hang_up, connection)
        return connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connections, connection = self._connections, self._connection
        if self._watch is not None:
            self._watch.cancel()
        if error is None:
            connections._answered(asyncio.get_running_loop().time() - self._began)
            await connections._give_back(connection)
            return
        if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
            connections._leave_standby(connection)
        # Else a slip of ours. Hung up between preparing and binding, asyncpg itself trips over the missing protocol.
        lost = isinstance(error, (asyncpg.InterfaceError, AttributeError)) and _gone(connection)
        await connections._release(connection)
        if lost:
            raise _away(ConnectionError("connection lost")) from error
        if isinstance(error, AWAY):
            raise _away(error) from error
        if isinstance(error, asyncpg.InterfaceError) and connections._pool.is_closing():
            raise unavailable(error) from error


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
