"""What the contestants stand on: PostgreSQL on a disk with fsync, Redis that syncs each write, a quiet receiver."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.contest import process_cpu_seconds
from bench.contestants import OURS, ROOT
from tests.services import postgres
from tests.services.ports import free_port

__all__ = ["START_WITHIN", "TUNING", "Places", "Receiver", "process_at", "receiver", "services"]

TUNING = {"shared_buffers": "1GB", "max_wal_size": "4GB", "wal_level": "replica"}
"""Given to every contestant alike; fsync and synchronous_commit stay on, as they are by default."""


START_WITHIN = 120.0
"""Seconds: at idle priority beside other work, a start has taken over thirty."""

SEEDING = 7200.0
"""Seconds that filling a database may take: ten million jobs took over ten minutes on a busy machine."""


class Places:
    """Hands out empty stores: a database, a file, or an emptied Redis. Each is given back before the next."""

    def __init__(
        self, server: postgres.PostgresServer, directory: Path, redis_port: int | None, receiver: Receiver
    ) -> None:
        self.echo = receiver.url
        self._receiver = receiver
        self._seeded: dict[int, tuple[str, str, float]] = {}
        self.version = str(server.fetch("SHOW server_version")[0][0])
        self._server = server
        self._directory = directory
        self._redis_port = redis_port
        self._numbers = itertools.count()

    @contextmanager
    def empty(self, kind: str) -> Iterator[str]:
        number = next(self._numbers)
        if kind == "postgres":
            name = f"bench{number}"
            try:
                yield self._server.create_database(name)
            finally:
                self._server.drop_database(name)
        elif kind == "sqlite":
            with tempfile.TemporaryDirectory(dir=self._directory) as place:
                yield f"sqlite:///{place}/bench.db"
        elif kind == "redis":
            assert self._redis_port is not None
            _redis_command(self._redis_port, b"FLUSHALL")
            yield f"redis://127.0.0.1:{self._redis_port}/0"
        else:
            yield kind

    @contextmanager
    def seeded(self, pending: int) -> Iterator[str]:
        """A database of ours that is kept: it holds that many pending jobs, and what earlier rounds left in it."""
        if pending not in self._seeded:
            name = f"seeded{pending}"
            self._server.drop_database(name)
            url = self._server.create_database(name)
            began = time.monotonic()
            given = json.dumps({"store": url, "pending": pending})
            subprocess.run(
                [*OURS["postgres"].command("seed"), given],
                cwd=ROOT,
                env={**os.environ, "BENCH_PATIENCE": f"{SEEDING:g}"},
                check=True,
                capture_output=True,
                text=True,
            )
            self._seeded[pending] = (name, url, time.monotonic() - began)
        yield self._seeded[pending][1]

    def seeding_seconds(self, pending: int) -> float:
        return self._seeded[pending][2]

    def forget_seeded(self) -> None:
        for name, _, _ in self._seeded.values():
            self._server.drop_database(name)
        self._seeded.clear()

    def receiver_cpu_seconds(self) -> float:
        return process_cpu_seconds(self._receiver.pid)


@dataclass(frozen=True)
class Receiver:
    url: str
    pid: int


@contextmanager
def services(directory: Path, redis_server: Path | None) -> Iterator[Places]:
    postgres.SETTINGS.update(TUNING)
    home = Path(tempfile.mkdtemp(prefix="onthedot-bench-", dir=directory))
    home.chmod(0o755)
    try:
        with postgres.running_postgres(home) as server, _redis(home, redis_server) as port, receiver() as hooks:
            assert server.process is not None
            os.environ["BENCH_POSTMASTER"] = str(server.process.pid)
            os.environ["BENCH_DISK"] = str(home)
            yield Places(server, home, port, hooks)
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _redis(home: Path, program: Path | None) -> Iterator[int | None]:
    if program is None or not program.exists():
        yield None
        return
    port = free_port()
    durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
    with process_at([str(program), "--port", str(port), "--dir", str(home), *durable], port):
        yield port


@contextmanager
def receiver() -> Iterator[Receiver]:
    port = free_port()
    with process_at([sys.executable, "-m", "bench.receiver", str(port)], port) as pid:
        yield Receiver(f"http://127.0.0.1:{port}/", pid)


@contextmanager
def process_at(command: list[str], port: int) -> Iterator[int]:
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_WITHIN
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _redis_command(port: int, command: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(command + b"\r\n")
        connection.recv(64)
