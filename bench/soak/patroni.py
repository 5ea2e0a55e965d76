"""Two PostgreSQL servers under Patroni with a synchronous standby, and the etcd that Patroni keeps its lock in.

All three are Debian's packages, on free ports of the loopback, as a user without rights. They are tools of the
measurement: the product knows only the addresses of both servers.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

from bench.soak.away import AWAY
from tests.services.debian import debian_program
from tests.services.orphan_reaper import orphan_reaper
from tests.services.ports import free_port
from tests.services.postgres import NOBODY, other_user

__all__ = ["DATABASE", "TTL", "Member", "Pair", "running_pair"]

T = TypeVar("T")

DATABASE = "soak"
TTL = 20
"""Seconds after which a lock is free that nobody renews: Patroni allows no less."""
PATIENCE = 180.0
LOOK = 0.25
SETTINGS = {
    "checkpoint_timeout": "1min",  # pg_wal reaches its size within minutes
    "max_connections": "100",
    "max_wal_size": "512MB",
    "shared_buffers": "512MB",
    "wal_keep_size": "256MB",
    "wal_log_hints": "on",  # for pg_rewind
}


class Member:
    """One PostgreSQL and its Patroni."""

    def __init__(self, name: str, home: Path, etcd: int, binaries: Path) -> None:
        self.name = name
        self.home = home / name
        self.port, self._rest = free_port(), free_port()
        self.data = self.home / "data"
        self.process: subprocess.Popen[bytes] | None = None
        self._config = self.home / "patroni.json"  # JSON is YAML
        self._write(etcd, binaries)

    def _write(self, etcd: int, binaries: Path) -> None:
        address, rest = f"127.0.0.1:{self.port}", f"127.0.0.1:{self._rest}"
        shared = {
            "ttl": TTL,
            "loop_wait": 2,
            "retry_timeout": 5,
            "maximum_lag_on_failover": 0,
            "synchronous_mode": True,
            "primary_start_timeout": 0,  # a primary that crashed is not waited for
            "postgresql": {"use_pg_rewind": True, "use_slots": True, "parameters": SETTINGS},
        }
        owner = {"username": "postgres"}
        told = {
            "scope": "soak",
            "name": self.name,
            "restapi": {"listen": rest, "connect_address": rest},
            "etcd3": {"host": f"127.0.0.1:{etcd}"},
            "bootstrap": {"dcs": shared, "initdb": [{"encoding": "UTF8"}, "no-locale"]},
            "postgresql": {
                "listen": address,
                "connect_address": address,
                "data_dir": str(self.data),
                "bin_dir": str(binaries),
                "pgpass": str(self.home / "pgpass"),
                "authentication": {"superuser": owner, "replication": owner, "rewind": owner},
                "parameters": {"unix_socket_directories": str(self.home)},
                "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": True,
            },
        }
        self.home.mkdir()
        self._config.write_text(json.dumps(told))
        if os.geteuid() == 0:
            os.chown(self.home, NOBODY, NOBODY)

    def start(self) -> None:
        with (self.home / "patroni.log").open("ab") as log:
            self.process = _start([_program("patroni"), str(self._config)], log)

    def postmaster(self) -> int | None:
        """Its process id; it is made sure that it does not outlive us."""
        try:
            found = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
        except (OSError, ValueError):
            return None
        if not Path(f"/proc/{found}").exists():
            return None
        orphan_reaper.runs(found, signal.SIGKILL)
        return found

    def kill_postmaster(self) -> None:
        """kill -9: its children notice and end."""
        if (running := self.postmaster()) is not None:
            with suppress(ProcessLookupError):
                os.kill(running, signal.SIGKILL)
            orphan_reaper.ended(running)

    def kill_patroni(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            orphan_reaper.ended(self.process.pid)
            self.process = None

    def ask(self, path: str, body: object = None) -> Any:
        """Patroni's own interface."""
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(f"http://127.0.0.1:{self._rest}{path}", data=data)
        with urllib.request.urlopen(asked, timeout=60 if data else 3) as answer:
            raw = answer.read()
        return json.loads(raw) if raw.startswith(b"{") else raw.decode()

    async def connect(self, database: str, timeout: float = 2.0) -> asyncpg.Connection:
        return await asyncpg.connect(
            host="127.0.0.1",
            port=self.port,
            user="postgres",
            database=database,
            timeout=timeout,
            server_settings={"application_name": "soak"},
        )

    def log(self) -> str:
        return (self.home / "patroni.log").read_text(errors="replace")[-2000:]


class Pair:
    def __init__(self, members: tuple[Member, Member]) -> None:
        self.members = members

    @property
    def store(self) -> str:
        """The address that the product gets: both hosts."""
        hosts = ",".join(f"127.0.0.1:{member.port}" for member in self.members)
        return f"postgresql://postgres@{hosts}/{DATABASE}"

    async def about(self) -> str:
        """The versions, and how it is set up."""
        connection = await (await self.primary()).connect("postgres")
        server = str(await connection.fetchval("SHOW server_version")).split(" ", 1)[0]
        await connection.close()
        patroni = await asyncio.to_thread(self.members[0].ask, "/patroni")
        settings = ", ".join(f"{name}={value}" for name, value in SETTINGS.items())
        version = patroni["patroni"]["version"]
        return f"two of {server} under Patroni {version} (synchronous_mode, ttl {TTL} s), fsync on, {settings}"

    def other(self, member: Member) -> Member:
        return next(each for each in self.members if each is not member)

    async def primary(self) -> Member:
        """The one that can be written, as soon as there is one."""
        found = await self._until(self._writable, "a primary")
        assert found is not None
        return found

    async def paired(self) -> float:
        """Wait until one leads and the other follows synchronously; when that was."""

        async def both() -> bool:
            return await asyncio.to_thread(self._roles) == {"leader", "sync_standby"}

        await self._until(both, "a leader and a synchronous standby")
        return time.time()

    async def _writable(self) -> Member | None:
        for member in self.members:
            with suppress(*AWAY):
                connection = await member.connect("postgres")
                try:
                    if not await connection.fetchval("SELECT pg_is_in_recovery()"):
                        return member
                finally:
                    connection.terminate()
        return None

    async def _until(self, look: Callable[[], Awaitable[T]], what: str) -> T:
        deadline = time.monotonic() + PATIENCE
        while not (found := await look()):
            if time.monotonic() > deadline:
                told = "\n".join(f"{member.name}: {member.log()}" for member in self.members)
                raise RuntimeError(f"not within {PATIENCE:g} s: Patroni has {what}\n{told}")
            await asyncio.sleep(LOOK)
        return found

    def _roles(self) -> set[str]:
        """Of the members that run; what Patroni says of one whose server is away is not believed."""
        for member in self.members:
            with suppress(OSError, urllib.error.URLError, json.JSONDecodeError):
                running = [
                    each for each in member.ask("/cluster")["members"] if each["state"] in ("running", "streaming")
                ]
                alive = all(each.postmaster() is not None and each.process is not None for each in self.members)
                return {each["role"] for each in running} if alive else set()
        return set()


@asynccontextmanager
async def running_pair(place: Path) -> AsyncIterator[Pair]:
    """The database of the soak is there, and empty; another one, `postgres`, is for the probe."""
    binaries = Path(_postgres_binaries())
    home = Path(tempfile.mkdtemp(prefix="onthedot-patroni-", dir=place))
    home.chmod(0o755)
    orphan_reaper.made(home)
    try:
        with _etcd(home) as etcd:
            members = (Member("a", home, etcd, binaries), Member("b", home, etcd, binaries))
            try:
                pair = Pair(members)
                members[0].start()
                first = await pair.primary()
                members[1].start()
                await pair.paired()
                connection = await first.connect("postgres")
                await connection.execute(f"CREATE DATABASE {DATABASE}")
                await connection.close()
                yield pair
            finally:
                for member in members:
                    member.kill_patroni()
                for member in members:
                    member.kill_postmaster()
    finally:
        shutil.rmtree(home, ignore_errors=True)
        orphan_reaper.removed(home)


@contextmanager
def _etcd(home: Path) -> Iterator[int]:
    clients, peers = free_port(), free_port()
    place = home / "etcd"
    place.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
    urls = {"client": f"http://127.0.0.1:{clients}", "peer": f"http://127.0.0.1:{peers}"}
    command = [_program("etcd"), "--name", "soak", "--data-dir", str(place / "data")]
    for kind, url in urls.items():
        command += [f"--listen-{kind}-urls", url]
    command += ["--advertise-client-urls", urls["client"], "--initial-advertise-peer-urls", urls["peer"]]
    command += ["--initial-cluster", f"soak={urls['peer']}"]
    with (home / "etcd.log").open("ab") as log:
        process = _start(command, log)
    try:
        yield clients
    finally:
        process.kill()
        process.wait()
        orphan_reaper.ended(process.pid)


def _start(command: list[str], log: Any) -> subprocess.Popen[bytes]:
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environ, **other_user()
    )
    orphan_reaper.runs(process.pid, signal.SIGKILL)
    return process


def _program(name: str) -> str:
    packages = {"patroni": ("patroni", "python3-etcd"), "etcd": ("etcd-server",)}
    return debian_program(name, *packages[name])


def _postgres_binaries() -> str:
    """Debian's: its Patroni knows that version."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        debian_program("psql", "postgresql")
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return str(found[-1].parent)
