"""Two PostgreSQL servers, of which the second takes over when the first is gone; then the first is made anew as the
second's standby. The nodes' address stays: the proxy leads to whichever is the primary.

sync    nothing that was acknowledged may be missing: a commit waits for the standby's disk
async   what was acknowledged in the last moments may be missing, and is excused by that alone
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from proof.chaos.database import NAME, Database
from proof.chaos.wire import Helper
from tests.services.ports import free_port
from tests.services.postgres import REPLICATED, PostgresServer, running_postgres

__all__ = ["Pair", "running_pair"]

CAUGHT_UP = "SELECT count(*) AS n FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = $1"


class Pair(Database):
    """`server` is the primary of the moment."""

    def __init__(self, primary: PostgresServer, *, sync: bool) -> None:
        super().__init__(primary, None, None)
        self.sync = sync
        self.failovers = 0
        self._standby: PostgresServer | None = None

    async def fail_over(self, proxy: Helper) -> None:
        """The primary is gone as by a power cut; its standby is promoted, and the way leads there."""
        assert self._standby is not None
        old, new = self.server, self._standby
        await asyncio.to_thread(old.stop, immediate=True)
        await asyncio.to_thread(_promote, new)
        self.server, self._standby = new, None
        self.url = new.url(NAME)
        await proxy.ask(do="upstream", port=new.port)
        self.failovers += 1

    async def pair_up(self) -> None:
        """A standby for the primary: a fresh copy."""
        primary = self.server
        standby = await asyncio.to_thread(_copy, primary, self.failovers)
        if self.sync:
            await asyncio.to_thread(_set, primary, "synchronous_standby_names", "*")
        for _ in range(300):
            rows: list[Any] = await asyncio.to_thread(primary.fetch, CAUGHT_UP, "sync" if self.sync else "async")
            if rows[0]["n"]:
                break
            await asyncio.sleep(0.1)
        else:
            raise RuntimeError(f"the standby does not follow:\n{standby.log()[-2000:]}")
        self._standby = standby

    async def close(self) -> None:
        for server in (self._standby, self.server):
            if server is not None:
                await asyncio.to_thread(server.stop, immediate=True)


def _copy(primary: PostgresServer, number: int) -> PostgresServer:
    data = primary.data.with_name(f"data{number + 2}")
    shutil.rmtree(data, ignore_errors=True)
    standby = PostgresServer(
        binaries=primary.binaries,
        data=data,
        port=free_port(),
        settings={**REPLICATED, "primary_conninfo": f"host=127.0.0.1 port={primary.port} user=postgres"},
    )
    standby.follow(primary)
    standby.start()
    return standby


def _promote(standby: PostgresServer) -> None:
    """`pg_promote` waits until it is done, a minute at the most."""
    standby.fetch("SELECT pg_promote()")
    standby.execute("ALTER SYSTEM RESET synchronous_standby_names")
    standby.execute("SELECT pg_reload_conf()")


def _set(server: PostgresServer, name: str, value: str) -> None:
    server.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    server.execute("SELECT pg_reload_conf()")


@asynccontextmanager
async def running_pair(*, sync: bool) -> AsyncIterator[Pair]:
    with running_postgres(settings=dict(REPLICATED)) as primary:
        await asyncio.to_thread(primary.create_database, NAME)
        pair = Pair(primary, sync=sync)
        try:
            await pair.pair_up()
            yield pair
        finally:
            await pair.close()
