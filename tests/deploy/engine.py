"""A Docker Engine with compose for the deployment test: the machine's own if there is one, else Debian's packages.

Ours lives in network, mount and PID namespaces of its own, with user-mode networking (slirp4netns) to the outside: its
bridges, iptables rules and ip_forward end with the namespace, and nothing of this machine is changed. Base images that
a registry would give are made by mmdebstrap.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.services.debian import debian_program
from tests.services.orphan_reaper import orphan_reaper
from tests.services.waiting import until_blocking

__all__ = ["ROOT", "DeployEngine", "running_deploy_engine"]

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".deploy"  # ignored by git: packages and base images, 700 MB
SUITE = "forky"
PACKAGES = ("docker.io", "docker-cli", "docker-buildx", "docker-compose", "containerd")
PYTHON_IMAGE, POSTGRES_IMAGE = "python:3.13-slim", "onthedot-test-postgres:17"
HOLDER = """
ip link set lo up
printf 'nameserver 10.0.2.3\\n' > "$1/resolv.conf"
mount --bind "$1/resolv.conf" "$(readlink -f /etc/resolv.conf)"
exec sleep infinity
"""


class DeployEngine:
    """`run("docker", "compose", "ps")` in its namespaces and environment."""

    def __init__(self, home: Path | None) -> None:
        self.home = home  # None: the machine's own engine
        self.env: dict[str, str] = dict(os.environ)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._holder = 0

    @property
    def enter(self) -> list[str]:
        """Before a command that is to reach published ports."""
        return [] if self.home is None else ["nsenter", "-t", str(self._holder), "-n"]

    def run(
        self, *command: str, check: bool = True, env: Mapping[str, str] | None = None, within: float = 600
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*self.enter, *command],
            cwd=ROOT,
            env={**self.env, **(env or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=within,
        )
        assert not check or done.returncode == 0, f"{' '.join(command)}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done

    def open(self) -> None:
        assert self.home is not None
        unpacked = _packages()
        self._namespaces(self.home)
        address, config = self.home / "containerd.sock", self.home / "containerd.toml"
        config.write_text('version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
        path = f"{unpacked}/usr/bin:{unpacked}/usr/sbin:/usr/sbin:{os.environ['PATH']}"
        self.env |= {"PATH": path}
        options = ["--root", f"{self.home}/croot", "--state", f"{self.home}/cstate"]
        self._inside("containerd", "-c", str(config), "--address", str(address), *options)
        until_blocking(address.exists, "containerd answers", 60)
        socket = self.home / "docker.sock"
        self._inside(
            *("dockerd", "-H", f"unix://{socket}", "--containerd", str(address), "--data-root", f"{self.home}/data"),
            *("--exec-root", f"{self.home}/exec", "--pidfile", f"{self.home}/pid"),
            *("--userland-proxy-path", f"{unpacked}/usr/sbin/docker-proxy", "--init-path", _init(unpacked)),
            *("--default-ulimit", "nofile=4096:4096", "--cgroup-parent", f"/{self.home.name}"),
        )
        client = self.home / "client"
        client.mkdir()
        plugins = [f"{unpacked}/usr/libexec/docker/cli-plugins"]
        (client / "config.json").write_text(json.dumps({"cliPluginsExtraDirs": plugins}))
        self.env |= {"DOCKER_HOST": f"unix://{socket}", "DOCKER_CONFIG": str(client)}
        until_blocking(lambda: self.run("docker", "info", check=False).returncode == 0, "dockerd answers", 60)
        self._base_images()

    def close(self) -> None:
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            orphan_reaper.ended(-process.pid)
        if self.home is not None:
            for folder in Path("/sys/fs/cgroup").glob(f"**/{self.home.name}"):
                for each in sorted(folder.glob("**/"), reverse=True):  # buildkit makes one below it
                    with suppress(OSError):
                        each.rmdir()

    def _namespaces(self, home: Path) -> None:
        for name, package in (("slirp4netns", "slirp4netns"), ("iptables", "iptables"), ("ip", "iproute2")):
            debian_program(name, package)
        debian_program("runc", "runc")  # of this Debian: that of forky wants a newer libc
        options = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        holder = self._popen("unshare", *options, "sh", "-euc", HOLDER, "sh", str(home))
        children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
        until_blocking(lambda: bool(children.read_text().split()), "the namespaces are there", 10)
        self._holder = int(children.read_text().split()[0])
        named = Path(f"/proc/{self._holder}/comm")
        until_blocking(lambda: named.read_text().strip() == "sleep", "the namespaces are set up", 10)
        self._popen("slirp4netns", "--configure", "--mtu=1400", "--disable-host-loopback", str(self._holder), "tap0")

    def _inside(self, *command: str) -> None:
        self._popen("nsenter", "-t", str(self._holder), "-n", "-m", "-p", *command)

    def _popen(self, *command: str) -> subprocess.Popen[bytes]:
        assert self.home is not None
        with (self.home / "engine.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=self.home, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        orphan_reaper.runs(-process.pid, signal.SIGKILL)
        self._processes.append(process)
        return process

    def _base_images(self) -> None:
        """What a registry would give: Python on Debian, and PostgreSQL with an entry point that takes the variables of
        the official image."""
        self.env |= {"POSTGRES_IMAGE": POSTGRES_IMAGE}
        self.run("docker", "import", str(_base("python", "python3,python3-venv,ca-certificates")), PYTHON_IMAGE)
        self.run("docker", "import", str(_base("postgres", "postgresql-17")), "onthedot-test-debian:postgres")
        self.run("docker", "build", "-t", POSTGRES_IMAGE, "tests/deploy/postgres")


def _packages() -> Path:
    """Debian's Docker 28 with buildx and compose, unpacked and not installed."""
    unpacked = CACHE / "docker"
    if (unpacked / "usr/bin/docker").exists():
        return unpacked
    lists, debs, sources = CACHE / "apt/lists", CACHE / "debs", CACHE / "sources.list"
    for folder in (lists / "partial", CACHE / "apt/cache/archives/partial", debs):
        folder.mkdir(parents=True, exist_ok=True)
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    sources.write_text(f"deb [signed-by={keys}] http://deb.debian.org/debian {SUITE} main\n")
    options = [
        *("-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=/dev/null"),
        *("-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={CACHE}/apt/cache"),
        *("-o", "Acquire::Check-Valid-Until=false", "-o", "APT::Sandbox::User=root"),
    ]
    subprocess.run(["apt-get", *options, "update"], check=True, capture_output=True)
    subprocess.run(["apt-get", *options, "download", *PACKAGES], cwd=debs, check=True, capture_output=True)
    for deb in debs.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", deb, unpacked], check=True)
    return unpacked


def _init(unpacked: Path) -> str:
    """What `init: true` puts first in a container: Debian has it as a package of its own, linked statically."""
    found = unpacked / "usr/bin/tini-static"
    return str(found) if found.exists() else debian_program("tini-static", "tini")


def _base(name: str, packages: str) -> Path:
    made = CACHE / f"{name}.tar"
    if not made.exists():
        program = debian_program("mmdebstrap", "mmdebstrap")
        trusted = "copy-in /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs"
        left_out = [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("doc", "man", "locale")]
        hooks = ["--customize-hook=mkdir -p $1/etc/ssl/certs", f"--customize-hook={trusted}"]
        kind = ["--variant=minbase", "--format=tar", f"--include={packages}"]
        command = [program, *kind, *hooks, *left_out, "trixie", f"{made}.new"]
        subprocess.run([*command, "http://deb.debian.org/debian"], check=True, capture_output=True)
        Path(f"{made}.new").rename(made)
    return made


@contextmanager
def running_deploy_engine() -> Iterator[DeployEngine]:
    own = DeployEngine(None)
    with suppress(FileNotFoundError):
        if all(own.run("docker", *asked, check=False).returncode == 0 for asked in (["info"], ["compose", "version"])):
            yield own
            return
    CACHE.mkdir(exist_ok=True)
    home = Path(tempfile.mkdtemp(prefix="onthedot-deploy-", dir=CACHE))
    orphan_reaper.made(home)
    engine = DeployEngine(home)
    try:
        engine.open()
        yield engine
    finally:
        engine.close()
        shutil.rmtree(home, ignore_errors=True)
        orphan_reaper.removed(home)
