"""A new connection, to whichever of the hosts answers first and takes writes.

asyncpg tries the hosts of an address one after the other under one time-out for all: a first one that accepts and never
answers hides the others. Here the next is tried as soon as one fails, or has been silent for a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg

from onthedot.store.postgres.address import Address, Route
from onthedot.store.postgres.errors import final, in_words, refused

__all__ = ["SILENT", "PostgresConnector"]

SILENT = 1.0
"""Seconds after which the next host is asked, too. Whoever answers first is taken."""

NOT_WRITABLE = "is a read-only standby"


class PostgresConnector:
    """Opens connections. What waiting can't mend (password, database, TLS) is a StoreError until one has been open;
    later it is an outage like any other: a database that is being moved refuses like that for a while."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._good: Route | None = None

    async def connect(self, dsn: str | None = None, **options: Any) -> Any:
        """The signature is that of asyncpg.connect, for its pool; `dsn` is ours anyway."""
        failed: dict[str, BaseException] = {}
        asked: dict[asyncio.Task[Any], Route] = {}
        try:
            for route in self._in_order():
                task = asyncio.ensure_future(asyncpg.connect(route.dsn, **options))
                asked[task] = route
                if (connection := await self._first(asked, failed, SILENT)) is not None:
                    return connection
            while asked:
                if (connection := await self._first(asked, failed, None)) is not None:
                    return connection
        finally:
            _give_up(asked)
        raise self._all_failed(failed)

    def _in_order(self) -> Iterator[Route]:
        """The one that was good last comes first."""
        routes = self._address.routes
        return iter(sorted(routes, key=lambda route: route is not self._good) if self._good else routes)

    async def _first(
        self, asked: dict[asyncio.Task[Any], Route], failed: dict[str, BaseException], wait: float | None
    ) -> Any:
        """The first connection that is there; None when one failed, or none came in time."""
        done, _ = await asyncio.wait(asked, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            route = asked[task]
            error = task.exception()
            if error is None:
                del asked[task]
                self._good = route
                return task.result()
            del asked[task]
            failed[route.name] = error
        return None

    def _all_failed(self, failed: dict[str, BaseException]) -> BaseException:
        errors = list(failed.values())
        if self._good is None and all(final(error) for error in errors):
            return refused(self._address, errors[0])
        for error in errors:
            if not isinstance(error, Exception):
                return error
        return ConnectionError("; ".join(f"{name}: {_said(error)}" for name, error in failed.items()))


def _said(error: BaseException) -> str:
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return NOT_WRITABLE
    return in_words(error)


def _give_up(asked: dict[asyncio.Task[Any], Route]) -> None:
    """Those that are not needed any more, without waiting for them: one of them hangs, and we may be cancelled."""
    for task in asked:
        task.cancel()
        task.add_done_callback(_hang_up)


def _hang_up(task: asyncio.Task[Any]) -> None:
    """One that came through at the same moment."""
    if not task.cancelled() and task.exception() is None:
        task.result().terminate()
