"""Programs of the distribution that tests need: root installs what is missing, one process at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

__all__ = ["ProgramMissing", "debian_program"]

PLACES = "/usr/lib/rabbitmq/bin:/usr/sbin"  # the first is RabbitMQ without the wrapper that changes the user


class ProgramMissing(Exception):
    """It is not here and can't be installed; the message says why."""


def debian_program(name: str, package: str) -> str:
    """The path of a program, after its package was installed if need be."""
    where = f"{PLACES}:{os.environ['PATH']}"
    if found := shutil.which(name, path=where):
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ProgramMissing(f"no {name} here: `apt-get install {package}` brings it")
    with (Path(tempfile.gettempdir()) / "onthedot-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        why = "" if shutil.which(name, path=where) else _install(package)
    if found := shutil.which(name, path=where):
        return found
    raise ProgramMissing(f"{package} can't be installed: {why}")


def _install(package: str) -> str:
    """Nothing of it is started: a test starts its own, in a directory of its own."""
    policy = Path("/usr/sbin/policy-rc.d")
    made = not policy.exists()
    if made:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    installing = ["apt-get", "install", "-y", "--no-install-recommends", package]
    try:
        done = subprocess.run(installing, check=False, capture_output=True, text=True, env=environ)
        if done.returncode != 0:
            subprocess.run(["apt-get", "update"], check=False, capture_output=True, env=environ)
            done = subprocess.run(installing, check=False, capture_output=True, text=True, env=environ)
    finally:
        if made:
            policy.unlink()
    return done.stderr[-300:]
