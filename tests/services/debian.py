"""Programs of the distribution that tests need: root installs what is missing, one process at a time.

`make test` runs `python -m tests.services.debian` before any test: one installation of everything. A test that installs
for itself may reach its time-out meanwhile, and a package manager that is killed leaves a machine on which nothing can
be installed any more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["ProgramMissing", "debian_program"]

PACKAGES = (
    *(
        "busybox-static",
        "chromium",
        "docker.io",
        "faketime",
        "iproute2",
        "pgbouncer",
        "podman",
        "rabbitmq-server",
        "runc",
    ),
)
PLACES = "/usr/lib/rabbitmq/bin:/usr/sbin"  # the first is RabbitMQ without the wrapper that changes the user


class ProgramMissing(Exception):
    """It is not here and can't be installed; the message says why."""


def debian_program(name: str, *packages: str) -> str:
    """The path of a program, after its packages were installed if need be."""
    where = f"{PLACES}:{os.environ['PATH']}"
    if found := shutil.which(name, path=where):
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ProgramMissing(f"no {name} here: `apt-get install {' '.join(packages)}` brings it")
    with _alone():
        why = "" if shutil.which(name, path=where) else _install(*packages)
    if found := shutil.which(name, path=where):
        return found
    raise ProgramMissing(f"{' '.join(packages)} can't be installed: {why}")


@contextmanager
def _alone() -> Iterator[None]:
    with (Path(tempfile.gettempdir()) / "onthedot-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(*packages: str) -> str:
    """Nothing of it is started: a test starts its own, in a directory of its own. What went wrong, or ""."""
    policy = Path("/usr/sbin/policy-rc.d")
    made = not policy.exists()
    if made:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    install = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    try:
        if _run(install):
            _run(["dpkg", "--configure", "-a"])  # an installation before this one was killed
            _run(["apt-get", "update"])
            return _run(install)
        return ""
    finally:
        if made:
            policy.unlink()


def _run(command: list[str]) -> str:
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # In a session of its own: Ctrl-C at the tests does not reach it half-way.
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environ, start_new_session=True)
    return "" if done.returncode == 0 else done.stderr[-300:] or f"exit code {done.returncode}"


def _lacking() -> list[str]:
    asked = ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *PACKAGES]
    told = subprocess.run(asked, check=False, capture_output=True, text=True).stdout
    there = {line.split()[0] for line in told.splitlines() if line.endswith(" installed")}
    return [package for package in PACKAGES if package not in there]


def main() -> int:
    """Install everything at once. Where that can't be done, each test says for itself what it lacks."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None or not _lacking():
        return 0
    with _alone():
        lacking = _lacking()
        if lacking:
            print(f"Installing {', '.join(lacking)}; this takes a minute, once.", file=sys.stderr)
            if why := _install(*lacking):
                print(f"Not everything could be installed: {why}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
