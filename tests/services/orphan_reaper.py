"""What must not outlive the tests, however they end: servers, nodes and the directories they lie in.

A fixture cleans up after its test, but not after SIGTERM, SIGKILL or an impatient second Ctrl-C: then PostgreSQL would
run on, with its data in memory. So each pytest process that starts such things has an executor beside it. It reads from
a pipe what there is, and when the pipe ends, because its writer did, it ends what was not crossed out.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

__all__ = ["NAME", "OrphanReaper", "execute", "orphan_reaper"]

NAME = "tests/services/orphan_reaper.py"
PATIENCE = 5.0


class OrphanReaper:
    """The side of the tests: what there is from now on, and what is gone."""

    def __init__(self) -> None:
        self._executor: subprocess.Popen[str] | None = None

    def runs(self, process: int, number: signal.Signals) -> None:
        """It gets this signal if we end first. A negative number is a process group, as for kill(2)."""
        self._write(f"runs {process} {number.value}")

    def ended(self, process: int) -> None:
        self._write(f"ended {process}")

    def made(self, directory: Path) -> None:
        """It is removed if we end first, after all that runs."""
        self._write(f"made {directory}")

    def removed(self, directory: Path) -> None:
        self._write(f"removed {directory}")

    def _write(self, line: str) -> None:
        if self._executor is None:
            # A session of its own: the Ctrl-C that ends the tests must not end their executor.
            self._executor = subprocess.Popen(
                [sys.executable, "-S", __file__], stdin=subprocess.PIPE, text=True, cwd="/", start_new_session=True
            )
        assert self._executor.stdin is not None
        self._executor.stdin.write(line + "\n")
        self._executor.stdin.flush()


orphan_reaper = OrphanReaper()


def execute(lines: IO[str]) -> None:
    running: dict[int, int] = {}
    directories: set[str] = set()
    for line in lines:
        kind, what = line.rstrip("\n").split(" ", 1)
        if kind == "runs":
            process, number = what.split()
            running[int(process)] = int(number)
        elif kind == "ended":
            running.pop(int(what), None)
        elif kind == "made":
            directories.add(what)
        else:
            directories.discard(what)
    for pid, signum in running.items():
        _send(pid, signum)
    deadline = time.monotonic() + PATIENCE
    while any(_send(pid, 0) for pid in running) and time.monotonic() < deadline:
        time.sleep(0.02)
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


def _send(process: int, number: int) -> bool:
    """Is it there?"""
    try:
        os.kill(process, number)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    execute(sys.stdin)
