"""Somebody who reads a page and types all of it: in a directory, a shell and a network of their own, in which the names
and ports of the manual are real: the API on 8000, a receiver on 5003, PostgreSQL at `db`.

What stays (a server, a receiver) is started as in another terminal. Where no namespaces can be made, it can't be done.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.services.orphan_reaper import orphan_reaper
from tests.services.postgres import PostgresServer, running_postgres
from tests.services.process import COMMAND
from tests.services.waiting import looks, until_blocking

__all__ = ["FORWARD", "Machine", "Network", "Reader", "Stuck", "can_make_networks", "network", "statements"]

HOSTS = (
    "localhost",
    "db",
    "db.example",
    "db.internal",
    "pgbouncer",
    "collector",
    "scheduler.example",
    "jobs.internal",
    "chat.example",
)
"""Names that pages use, all of which are this machine."""
DATABASES = ("onthedot", "shop")
HOLDER = """
ip link set lo up
mount --bind "$1/hosts" /etc/hosts
touch "$1/ready"
exec sleep infinity
"""
FORWARD = """
import asyncio, sys

async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()

async def serve(reader, writer):
    to_reader, to_writer = await asyncio.open_unix_connection(sys.argv[1])
    await asyncio.gather(pump(reader, to_writer), pump(to_reader, writer), return_exceptions=True)

async def main():
    servers = [await asyncio.start_server(serve, "127.0.0.1", int(port)) for port in sys.argv[2:]]
    print("there", flush=True)
    await asyncio.gather(*(server.serve_forever() for server in servers))

asyncio.run(main())
"""
STAYS = re.compile(
    r"^(?:[A-Z_]+=\S* )*(?:onthedot (serve|echo|witness)\b(?!.*(?:--once| \| ))|python3 (receiver)\.py"
    r"|kubectl .*(port-forward|logs -f)|(journalctl) .*-f)"
)
PORT = re.compile(r"--port (\d+)")
WITHIN = 60.0
SETTLED = 4.0
"""Seconds after which something that stays, and has not ended, is taken to work, if it prints nothing."""
PORTS = {"serve": "8000", "echo": "5003", "receiver": "5003"}
READY = {
    "serve": "Ctrl-C",
    "echo": "listening on",
    "witness": "",
    "receiver": "",
    "port-forward": "Forwarding from",
    "logs -f": "Witness: ",
    "journalctl": "Witness: ",
}


class Stuck(AssertionError):
    """A statement that does not do what the page says."""


def statements(text: str) -> Iterator[str]:
    """As a shell takes them: line by line, as soon as one is complete."""
    gathered = ""
    for line in text.splitlines():
        gathered += f"{line}\n"
        if line.endswith("\\"):
            continue
        read = subprocess.run(["bash", "-n", "-c", gathered], capture_output=True, text=True, check=False)
        if read.returncode == 0 and not read.stderr:
            if re.sub(r"^\s*#.*$", "", gathered, flags=re.MULTILINE).strip():
                yield gathered
            gathered = ""
    if gathered.strip():
        raise Stuck(f"the shell wants more than {gathered!r}")


class Terminal(NamedTuple):
    kind: str
    port: str
    store: str


def _excludes(one: Terminal, other: Terminal) -> bool:
    """Whether a reader stops the other one first: there is one of a kind on a port, and one server of a file."""
    same_file = one.store == other.store == "a file"
    return (one.port != "" and one.port == other.port) or same_file


class Machine(Protocol):
    """Where a reader sits."""

    def enter(self, directory: Path) -> list[str]: ...


class Network:
    def __init__(self, holder: int, server: PostgresServer) -> None:
        self._holder, self._server = holder, server

    def empty_databases(self) -> None:
        for name in DATABASES:
            self._server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            self._server.execute(f"CREATE DATABASE {name} OWNER scheduler")

    def enter(self, directory: Path) -> list[str]:
        """Before a command that is to run there: another root has another current directory."""
        return ["nsenter", "-t", str(self._holder), "-n", "-m", f"--wd={directory}"]


@contextmanager
def network(folder: Path) -> Iterator[Network]:
    """With PostgreSQL on 5432, and once more where a pooler would be."""
    (folder / "hosts").write_text("".join(f"127.0.0.1 {name}\n" for name in HOSTS))
    with running_postgres() as server:
        server.execute("CREATE ROLE scheduler LOGIN")
        holder = _popen(["unshare", "--net", "--mount", "sh", "-euc", HOLDER, "sh", str(folder)], folder / "holder.log")
        try:
            until_blocking((folder / "ready").exists, "its own network is there", 20)
            made = Network(holder.pid, server)
            at = f"{server.data.parent}/.s.PGSQL.{server.port}"
            forward = [*made.enter(folder), sys.executable, "-u", "-c", FORWARD, at, "5432", "6432"]
            forwarder = _popen(forward, folder / "forward.log")
            until_blocking(lambda: "there" in (folder / "forward.log").read_text(), "the database is there", 20)
            try:
                yield made
            finally:
                _end(forwarder)
        finally:
            _end(holder)


class Reader:
    """One page."""

    def __init__(self, directory: Path, network: Machine) -> None:
        self.directory = directory
        self._network = network
        self._terminals: dict[Terminal, subprocess.Popen[bytes]] = {}
        self._count = 0
        self._said = ""
        path = f"{directory}/bin:{COMMAND.parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self._env = {"PATH": path, "HOME": str(directory), "COLUMNS": "200", "PYTHONUNBUFFERED": "1"}
        self._shell = subprocess.Popen(
            [*network.enter(directory), "bash", "--norc"],
            cwd=directory,
            env=self._env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        orphan_reaper.runs(-self._shell.pid, signal.SIGKILL)

    def type(self, text: str) -> str:
        """What was printed. Stuck: a statement failed, or did not end."""
        return "".join(self._statement(each) for each in statements(text))

    def close(self) -> None:
        for terminal in self._terminals.values():
            _end(terminal)
        _end(self._shell)
        for pipe in (self._shell.stdin, self._shell.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def _statement(self, text: str) -> str:
        line = text.strip().removesuffix("&").strip()
        stays = STAYS.match(line)
        if stays is None:
            return self._ask(text)
        kind = next(each for each in stays.groups() if each)
        port = PORT.search(line)
        store = "" if kind != "serve" else "a database" if "--store" in line else "a file"
        self._start(kind, Terminal(kind, port[1] if port else PORTS.get(kind, ""), store), re.sub(r"\s+#.*$", "", line))
        return ""

    def _ask(self, text: str) -> str:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        mark = f"--{time.monotonic_ns()}--"
        stop = threading.Timer(WITHIN, lambda: os.killpg(self._shell.pid, signal.SIGKILL))
        stop.start()
        said = ""
        try:
            self._shell.stdin.write(f"{{\n{text}\n}} < /dev/null\ncode=$?; printf '\\n{mark} %s\\n' $code\n")
            self._shell.stdin.flush()
            for line in self._shell.stdout:
                if line.startswith(mark):
                    if line.split()[1] not in ("0", "141"):  # 141: it was read no further, as by `head`
                        raise Stuck(f"{text.strip()}: exit code {line.split()[1]}: {said.strip()[-1500:]}")
                    return said
                said += line
        except BrokenPipeError:
            pass
        finally:
            stop.cancel()
        raise Stuck(f"{text.strip()}: did not end within {WITHIN:.0f} s, or the shell ended: {said.strip()[-1500:]}")

    def _start(self, kind: str, name: Terminal, line: str) -> None:
        """In another terminal. One of its kind on the same port is stopped before, as a reader would."""
        for other in [each for each in self._terminals if _excludes(name, each)]:
            _end(self._terminals.pop(other))
        self._count += 1
        log = self.directory / f"terminal-{self._count}.log"
        self._terminals[name] = process = _popen(
            [
                *self._network.enter(self.directory),
                "bash",
                "-c",
                f"exec {line}" if not re.match("[A-Z_]+=", line) else line,
            ],
            log,
            cwd=self.directory,
            env=self._env,
        )
        began = time.monotonic()
        for _ in looks(WITHIN):
            said = log.read_text()
            if process.poll() is not None:
                raise Stuck(f"{line}: ended with {process.returncode}: {said[-1500:]}")
            if READY[kind] and READY[kind] in said:
                return
            if not READY[kind] and time.monotonic() - began > SETTLED:
                return
            if kind == "serve" and "node.registered" in said:  # it is told to say no more, or has no page to tell of
                return
        raise Stuck(f"{line}: not there within {WITHIN:.0f} s: {log.read_text()[-1500:]}")


def _popen(command: list[str], log: Path, **more: object) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, **more
        )  # type: ignore[call-overload]
    orphan_reaper.runs(-process.pid, signal.SIGKILL)
    return process  # type: ignore[no-any-return]


def _end(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    orphan_reaper.ended(-process.pid)


def can_make_networks() -> bool:
    return os.geteuid() == 0 and all(shutil.which(name) for name in ("unshare", "nsenter", "ip", "bash", "curl"))
