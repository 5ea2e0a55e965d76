"""The PostgreSQL that is crashed, filled up and set to a wrong time. Its files lie on a small disk of their own where
that can be had, so that it can be full."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import asyncpg

from proof.chaos.faketime import FakeTime
from tests.services.postgres import PostgresServer, running_postgres

__all__ = ["Database", "running_database"]

DISK = 6 * 1024**3
NAME = "chaos"


class Database:
    def __init__(self, server: PostgresServer, disk: Path | None, clock: FakeTime | None) -> None:
        self.server = server
        self.disk = disk  # None: it can't be filled
        self.clock = clock  # None: it can't be set
        self.url = server.url(NAME)
        self.lock = asyncio.Lock()  # held while something is done to the server

    async def crash(self, seconds: float) -> None:
        """Like a power cut, and away for that long."""
        await asyncio.to_thread(self.server.stop, immediate=True)
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self.server.start)

    async def fill(self, seconds: float) -> None:
        """No byte is left on its disk for that long."""
        assert self.disk is not None
        _shrink(self.disk)
        try:
            await asyncio.sleep(seconds)
        finally:
            _resize(self.disk, DISK)
        await self._revive()

    async def _revive(self) -> None:
        """PostgreSQL may have given up when it could not write its log."""
        for _ in range(200):
            if self.server.process is not None and self.server.process.poll() is not None:
                await asyncio.to_thread(self.server.start)
            with contextlib.suppress(OSError, asyncpg.PostgresError, TimeoutError):
                await self.fetch("SELECT 1")
                return
            await asyncio.sleep(0.1)
        raise RuntimeError("PostgreSQL did not come back after its disk was full")

    async def terminate(self, most: int) -> int:
        """End some connections from the server's side."""
        rows = await self.fetch(
            "SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity WHERE datname = $1"
            " AND pid <> pg_backend_pid() AND backend_type = 'client backend' ORDER BY random() LIMIT $2) AS chosen",
            NAME,
            most,
        )
        return len(rows)

    async def fetch(self, sql: str, *args: object) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.url, timeout=5)
        try:
            return list(await connection.fetch(sql, *args))
        finally:
            await connection.close()

    async def execute(self, sql: str) -> None:
        connection = await asyncpg.connect(self.url, timeout=5)
        try:
            await connection.execute(sql)
        finally:
            await connection.close()


@asynccontextmanager
async def running_database(*, clock: FakeTime | None = None) -> AsyncIterator[Database]:
    with small_disk() as disk, running_postgres(disk) as server:
        if clock is not None:
            await asyncio.to_thread(server.stop)
            server.environ = clock.environ()
            await asyncio.to_thread(server.start)
        await asyncio.to_thread(server.create_database, NAME)
        yield Database(server, disk, clock)


def _shrink(disk: Path) -> None:
    """To what is used. While that grows meanwhile, the kernel refuses."""
    for slack in (0, 1 << 16, 1 << 18, 1 << 20, 1 << 22):
        with contextlib.suppress(subprocess.CalledProcessError):
            _resize(disk, shutil.disk_usage(disk).used + slack)
            return
    raise RuntimeError("the disk could not be shrunk")


def _resize(disk: Path, size: int) -> None:
    """To make the disk smaller is quicker than to fill it, and costs no memory."""
    subprocess.run(["mount", "-o", f"remount,size={max(size, 4096)}", disk], check=True, capture_output=True)


@contextmanager
def small_disk() -> Iterator[Path | None]:
    """A tmpfs of a few gigabytes; None where mounting is not allowed."""
    if os.geteuid() != 0:
        yield None
        return
    place = Path(tempfile.mkdtemp(prefix="onthedot-disk-"))
    place.chmod(0o755)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=755", "onthedot-chaos", place],
        check=False,
        capture_output=True,
    )
    try:
        yield place if mounted.returncode == 0 else None
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "-l", place], check=False)
        place.rmdir()
