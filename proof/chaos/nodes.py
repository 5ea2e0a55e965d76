"""The nodes: real processes, each with its own door to the database, started, killed, frozen and stopped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

from proof.chaos.clock import TrueTime
from proof.chaos.node import LISTENS
from proof.checker.events import Crashed, History

__all__ = ["LOOKAHEAD", "PYTHON_PATH", "NodeProcess"]

ROOT = Path(__file__).parents[2]
PYTHON_PATH = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
"""The product of the tree that this lies in, wherever else one is installed."""
LOOKAHEAD = "500ms"
"""What docs/operations.md advises where nodes die often: with 2 s one run in 27 was held by a node that was killed or
frozen before its instant, and waited for the lease (p99 4.4 s under faults)."""


class NodeProcess:
    def __init__(
        self,
        name: str,
        *args: str,
        directory: Path,
        time: TrueTime,
        history: History,
        environ: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.args = args
        self.clock_ms = 0  # how wrong its wall clock is
        self.busy = False  # something is being done to it
        self.frozen = False
        self.refused: list[int] = []  # when it did not start because it could not reach the database
        self.pid = 0
        self._environ = environ or {}
        self._directory = directory
        self._time = time
        self._history = history
        self._log = directory / f"{name}.log"
        self._orders = directory / f"{name}.orders"
        self._process: asyncio.subprocess.Process | None = None
        self._watch: asyncio.Task[None] | None = None
        self._wanted = False

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def follow(self, time: TrueTime) -> None:
        self._time = time

    async def start(self, point: str = "") -> None:
        """point: "name count", where it is to kill itself."""
        self._write(point)
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._directory),
            "PYTHONPATH": PYTHON_PATH,
            "PYTHONUNBUFFERED": "1",
            "LOG_LEVEL": "WARNING",
            "LOGS_BASE_DIRECTORY": os.devnull,
            "ONTHEDOT_LOOKAHEAD": LOOKAHEAD,
            "CHAOS_FILE": str(self._orders),
            **self._environ,
        }
        with self._log.open("ab") as out:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "proof.chaos.node",
                "serve",
                *self.args,
                cwd=self._directory,
                env=environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.pid = self._process.pid
        self.frozen = False
        self._wanted = not point
        self._watch = asyncio.create_task(self._look_after(self._process), name=f"watch-{self.name}")

    async def _look_after(self, process: asyncio.subprocess.Process) -> None:
        """A node that ends by itself is a finding, unless it could not even start because the database was away."""
        code = await process.wait()
        if not self._wanted or process is not self._process:
            return
        tail = self._log.read_text(errors="replace")[-1500:]
        if code == 1 and any("can't be reached" in line for line in tail.strip().splitlines()[-3:]):
            self.refused.append(self._time.now)
        else:
            self._history.append(Crashed(at=self._time.now, node=self.name, error=f"ended with {code}: {tail}"))
        await asyncio.sleep(0.5)
        if self._wanted:
            await self.start()

    def arm(self, point: str, count: int) -> None:
        self._wanted = False
        self._say(f"{point} {count}")

    def disarm(self) -> None:
        self._wanted = self.running
        self._say("")

    def set_clock(self, offset_ms: int) -> None:
        self.clock_ms = offset_ms
        self._say("")

    def _say(self, point: str) -> None:
        """A signal that came before it listens would end it; it reads what was written as soon as it does."""
        self._write(point)
        heard = self._orders.with_name(self._orders.name + LISTENS)
        if heard.exists() and heard.read_text() == str(self.pid):
            self._signal(signal.SIGUSR1)

    def _write(self, point: str) -> None:
        fresh = self._orders.with_suffix(".new")
        fresh.write_text(f"clock {self.clock_ms}\n{point}".strip() + "\n")
        fresh.replace(self._orders)

    def kill(self) -> None:
        self._wanted = False
        self._signal(signal.SIGKILL)

    def terminate(self) -> None:
        self._wanted = False
        self._signal(signal.SIGTERM)

    def freeze(self) -> None:
        self.frozen = True
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.frozen = False
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.running and self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def ended(self, within: float) -> bool:
        if self._process is None:
            return True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), within)
        return not self.running

    async def bury(self) -> None:
        """Whatever is left of it ends now."""
        self._wanted = False
        if self._watch is not None:
            self._watch.cancel()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""
