"""A real Docker Engine for the tests: Debian's containerd and dockerd, as two processes with a directory of their own.

Both are in a PID and mount namespace of their own, of which containerd is the first process: when that ends, whatever
containers are left end with it, and so do all mounts. Networks are not touched: containers have none here. `stop` and
`start` are a restart of the engine, with containers that run on (`live-restore`); `freeze` is an engine that hangs.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.services.debian import ProgramMissing, debian_program
from tests.services.memory import roomy_directory
from tests.services.orphan_reaper import orphan_reaper
from tests.services.waiting import until_blocking

__all__ = ["ENGINE_PREFIX", "IMAGE", "EngineServer", "busybox_layer", "running_engine", "running_podman"]

ENGINE_PREFIX = "onthedot-docker-"
IMAGE = "registry.test/team/busybox:1"
START_SECONDS = 60.0
_APPLETS = (
    "sh",
    "echo",
    "sleep",
    "cat",
    "true",
    "false",
    "kill",
    "ls",
    "head",
    "id",
    "env",
    "tail",
    "dd",
    "seq",
    "grep",
)


class EngineServer:
    def __init__(self, home: Path, *options: str) -> None:
        """`options`: more of dockerd's."""
        self.home, self.options = home, options
        self.socket = home / "docker.sock"
        self.url = f"unix://{self.socket}"
        self._containerd: subprocess.Popen[bytes] | None = None
        self._entered: subprocess.Popen[bytes] | None = None  # nsenter, whose child is dockerd

    def open(self) -> None:
        config, address = self.home / "containerd.toml", self.home / "containerd.sock"
        config.write_text('version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
        program = debian_program("containerd", "docker.io")
        arguments = ["-c", str(config), "--address", str(address), "--root", f"{self.home}/croot", "--state"]
        command = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", program, *arguments]
        self._containerd = self._popen([*command, f"{self.home}/cstate"])
        until_blocking(lambda: self._ended(self._containerd) or address.exists(), "containerd answers", START_SECONDS)
        self.start()
        self._import(IMAGE)

    def start(self) -> None:
        assert self._containerd is not None
        (first,) = psutil.Process(self._containerd.pid).children()
        dockerd = debian_program("dockerd", "docker.io")
        options = [
            *("-H", self.url, "--containerd", f"{self.home}/containerd.sock", "--data-root", f"{self.home}/data"),
            *("--exec-root", f"{self.home}/exec", "--pidfile", f"{self.home}/pid", "--storage-driver", "vfs"),
            *("--default-ulimit", "nofile=1024:1024", "--bridge", "none", "--iptables=false", "--ip6tables=false"),
            *("--ip-forward=false", "--live-restore", "--cgroup-parent", f"/{self.home.name}", *self.options),
        ]
        self.socket.unlink(missing_ok=True)
        (self.home / "pid").unlink(missing_ok=True)
        self._entered = self._popen(["nsenter", "-t", str(first.pid), "-p", "-m", dockerd, *options])
        until_blocking(lambda: self._ended(self._entered) or self._answers(), "dockerd answers", START_SECONDS)

    def stop(self, *, kill: bool = False) -> None:
        entered, self._entered = self._entered, None
        if entered is None:
            return
        for dockerd in psutil.Process(entered.pid).children():
            dockerd.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        entered.wait(30)
        orphan_reaper.ended(-entered.pid)

    def restart(self, *, kill: bool = False) -> None:
        self.stop(kill=kill)
        self.start()

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """nsenter too, which stops with its child."""
        assert self._entered is not None
        self._signal(signal.SIGCONT)
        self._entered.send_signal(signal.SIGCONT)

    def close(self) -> None:
        with suppress(OSError, psutil.Error):
            self.thaw()
            for name in self.containers():
                self.ask("DELETE", f"/containers/{name}?force=1&v=1")
        self.stop(kill=True)
        if self._containerd is not None:
            self._containerd.kill()
            self._containerd.wait()
            orphan_reaper.ended(-self._containerd.pid)
        for name in (self.home.name, "libpod_parent/conmon", "libpod_parent"):  # the last two stay if others use them
            with suppress(OSError):  # others come and go while they are looked through
                for folder in list(Path("/sys/fs/cgroup").glob(f"**/{name}")):
                    folder.rmdir()

    def ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        """The answer to a request, read as JSON where it is some; AssertionError for one that was refused."""
        connection = _UnixConnection(self.socket)
        try:
            connection.request(method, path, body, {"content-type": "application/json"})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        assert response.status < 400, (method, path, response.status, content[:500])
        with suppress(ValueError):
            return json.loads(content)
        return content

    def containers(self) -> dict[str, str]:
        """States of all there are, by name."""
        return {each["Names"][0].lstrip("/"): each["State"] for each in self.ask("GET", "/containers/json?all=1")}

    def inspect(self, name: str) -> Any:
        return self.ask("GET", f"/containers/{name}/json")

    def _import(self, image: str) -> None:
        name, _, tag = image.rpartition(":")
        self.ask("POST", f"/images/create?fromSrc=-&repo={name}&tag={tag}", busybox_layer())

    def _signal(self, number: signal.Signals) -> None:
        assert self._entered is not None
        for dockerd in psutil.Process(self._entered.pid).children():
            dockerd.send_signal(number)

    def _answers(self) -> bool:
        try:
            return bool(self.ask("GET", "/_ping"))
        except (OSError, http.client.HTTPException, AssertionError):
            return False

    def _ended(self, process: subprocess.Popen[bytes] | None) -> bool:
        if process is not None and process.poll() is not None:
            raise RuntimeError(f"the engine did not start:\n{(self.home / 'engine.log').read_text()[-2000:]}")
        return False

    def _popen(self, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.home / "engine.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        orphan_reaper.runs(-process.pid, signal.SIGKILL)
        return process


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("engine", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def busybox_layer() -> bytes:
    """A file system with busybox in it, and nothing else."""
    program = Path(debian_program("busybox", "busybox-static")).resolve()
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, mode in (("bin", 0o755), ("tmp", 0o1777)):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            tar.addfile(folder)
        tar.add(program, "bin/busybox")
        for applet in _APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return made.getvalue()


class PodmanServer(EngineServer):
    """Debian's Podman, which answers the same API: one process, the first of its namespace. It is not restarted."""

    def open(self) -> None:
        podman = debian_program("podman", "podman")
        debian_program("runc", "runc")
        config = self.home / "containers.conf"
        config.write_text(
            '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n'
            '[engine]\ncgroup_manager = "cgroupfs"\nruntime = "runc"\nevents_logger = "file"\n'
        )
        places = ["--root", f"{self.home}/root", "--runroot", f"{self.home}/run", "--tmpdir", f"{self.home}/tmp"]
        service = [podman, *places, "--storage-driver", "vfs", "system", "service", "--time=0", self.url]
        told = [f"CONTAINERS_CONF={config}", f"HOME={self.home}"]
        command = ["unshare", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "env", *told, *service]
        self._containerd = self._popen(command)
        until_blocking(lambda: self._ended(self._containerd) or self._answers(), "Podman answers", START_SECONDS)
        self.ask("POST", f"/v4.0.0/libpod/images/import?reference={IMAGE}", busybox_layer())

    def thaw(self) -> None:
        """Nobody stopped it."""


@contextmanager
def running_engine(*options: str) -> Iterator[EngineServer]:
    """ProgramMissing where there is none to be had."""
    with _running(EngineServer, *options) as server:
        yield server


@contextmanager
def running_podman() -> Iterator[EngineServer]:
    with _running(PodmanServer) as server:
        yield server


@contextmanager
def _running(kind: type[EngineServer], *options: str) -> Iterator[EngineServer]:
    if os.geteuid() != 0:
        raise ProgramMissing("a container engine of its own needs root")
    home = Path(tempfile.mkdtemp(prefix=ENGINE_PREFIX, dir=roomy_directory()))
    orphan_reaper.made(home)
    server = kind(home, *options)
    try:
        server.open()
        yield server
    finally:
        server.close()
        shutil.rmtree(home, ignore_errors=True)
        orphan_reaper.removed(home)
