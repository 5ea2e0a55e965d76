"""What the contestants stand on: PostgreSQL on a disk with fsync, Redis that syncs each write, a quiet receiver."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services import postgres
from tests.services.ports import free_port

__all__ = ["TUNING", "Places", "services"]

TUNING = {"shared_buffers": "1GB", "max_wal_size": "4GB", "wal_level": "replica"}
"""Given to every contestant alike; fsync and synchronous_commit stay on, as they are by default."""


class Places:
    """Hands out empty stores: a database, a file, or an emptied Redis. Each is given back before the next."""

    def __init__(self, server: postgres.PostgresServer, directory: Path, redis_port: int | None, echo: str) -> None:
        self.echo = echo
        self.version = str(server.fetch("SHOW server_version")[0][0])
        self._server = server
        self._directory = directory
        self._redis_port = redis_port
        self._numbers = itertools.count()

    @property
    def has_redis(self) -> bool:
        return self._redis_port is not None

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
def services(directory: Path, redis_server: Path | None) -> Iterator[Places]:
    postgres.SETTINGS.update(TUNING)
    home = Path(tempfile.mkdtemp(prefix="onthedot-bench-", dir=directory))
    home.chmod(0o755)
    try:
        with postgres.running_postgres(home) as server, _redis(home, redis_server) as port, _echo() as echo:
            assert server.process is not None
            os.environ["BENCH_POSTMASTER"] = str(server.process.pid)
            yield Places(server, home, port, echo)
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _redis(home: Path, program: Path | None) -> Iterator[int | None]:
    if program is None or not program.exists():
        yield None
        return
    port = free_port()
    durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
    with _process([str(program), "--port", str(port), "--dir", str(home), *durable], port):
        yield port


@contextmanager
def _echo() -> Iterator[str]:
    port = free_port()
    program = str(Path(sys.executable).with_name("onthedot"))
    with _process([program, "echo", "--port", str(port), "--quiet"], port):
        yield f"http://127.0.0.1:{port}/"


@contextmanager
def _process(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()


def _redis_command(port: int, command: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(command + b"\r\n")
        connection.recv(64)
