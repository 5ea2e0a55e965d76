"""`onthedot` without its start: each test process keeps one process that has imported all of it, and forks that.

A node that is started by its command takes 0.8 s of CPU until it is ready, most of it imports; several hundred are
started, on two cores. Whatever only an interpreter's own start can do (LD_PRELOAD, PYTHONPATH, another command) is
started by its command, as is everything in `tests/acceptance`.
"""

from __future__ import annotations

import io
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["ForkedProcess", "Preloaded", "fits", "preloaded"]

NAME = "tests.services.preloaded"
PLAIN = frozenset({"PATH", "HOME", "PYTHONUNBUFFERED", "TZ", "COLUMNS", "NO_COLOR", "TERM"})


def fits(environ: Mapping[str, str]) -> bool:
    """May a fork have this environment? Only if all of it is read after the start."""
    return all(name in PLAIN or name.startswith("ONTHEDOT_") for name in environ)


class Preloaded:
    """The side of the tests. Orders are given one at a time: tests wait for nodes in several threads."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(
        self, argv: Sequence[str], *, environ: Mapping[str, str], directory: Path, log: Path, files: int | None
    ) -> ForkedProcess:
        order = {"argv": list(argv), "environ": dict(environ), "directory": str(directory), "log": str(log)}
        return ForkedProcess(self._ask({**order, "files": files})["pid"], self)

    def exit_code(self, pid: int) -> int:
        """Of one that has ended. Until it is asked for, its pid is not given to another."""
        return int(self._ask({"ended": pid})["code"])

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        with self._turn:
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", NAME],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    cwd=Path(__file__).parents[2],
                    start_new_session=True,
                )
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
            return answer


class ForkedProcess:
    """As much of subprocess.Popen as the tests use, for a process that is not our child."""

    def __init__(self, pid: int, parent: Preloaded) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._parent = parent
        self._handle = os.pidfd_open(pid)
        self._turn = threading.Lock()

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(["onthedot"], timeout or 0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)

    def _ended(self, within: float | None) -> int | None:
        if self.returncode is None and select.select([self._handle], [], [], within)[0]:
            with self._turn:
                if self.returncode is None:
                    self.returncode = self._parent.exit_code(self.pid)
        return self.returncode

    def __del__(self) -> None:
        os.close(self._handle)


preloaded = Preloaded()


def main() -> None:
    from proof.forks import fork, preload

    preload()
    with open(0, "rb", buffering=0, closefd=False) as orders:
        while line := orders.readline():
            order = json.loads(line)
            if "ended" in order:
                _, status = os.waitpid(order["ended"], 0)
                answer = {"code": os.waitstatus_to_exitcode(status)}
            else:
                pid = fork()
                if pid == 0:
                    _live(order)
                answer = {"pid": pid}
            os.write(1, json.dumps(answer).encode() + b"\n")


def _live(order: dict[str, Any]) -> NoReturn:
    from onthedot.cli import main as command
    from proof.forks import live

    os.environ.clear()
    os.environ.update(order["environ"])
    time.tzset()
    sys.argv = ["onthedot", *order["argv"]]
    sys.path[:] = [place for place in sys.path if place != str(Path.cwd())]
    # As PYTHONUNBUFFERED: a test reads what was printed, also of a node that was killed.
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", write_through=True)
    live(command, directory=Path(order["directory"]), log=Path(order["log"]), files=order["files"])


if __name__ == "__main__":
    main()
