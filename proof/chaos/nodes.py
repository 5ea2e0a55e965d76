"""The nodes: real processes, each with its own door to the database, started, killed, frozen and stopped."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path

from proof.chaos.clock import TrueTime
from proof.chaos.life import Life
from proof.chaos.node import LISTENS
from proof.chaos.wire import Helper
from proof.checker.events import Crashed, History

__all__ = ["NodeProcess", "lookahead_of"]

_AWAY = re.compile("Error: .*(can't reach|can't be reached)")  # what older versions say, too


def lookahead_of(seed: int) -> str:
    """What docs/operations.md advises where nodes die often: with 2 s one run in 27 was held by a node that was killed
    or frozen before its instant, and waited for the lease (p99 4.4 s under faults). Every third seed has the
    default."""
    return "2s" if seed % 3 == 0 else "500ms"


class NodeProcess:
    """Forked by a zygote: the imports alone take 0.28 s of CPU, of the two cores that all nodes share here, and one of
    them is started again every few seconds."""

    def __init__(
        self,
        name: str,
        *args: str,
        directory: Path,
        time: TrueTime,
        history: History,
        zygote: Helper | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.files: int | None = None  # how many it may have open, from its next start on
        self.args = args
        self.clock_ms = 0  # how wrong its wall clock is
        self.busy = False  # something is being done to it
        self.frozen = False
        self.refused: list[int] = []  # when it did not start because it could not reach the database
        self.pid = 0
        self._zygote = zygote
        self._environ = dict(environ or {})
        self._directory = directory
        self._time = time
        self._history = history
        self._log = directory / f"{name}.log"
        self._orders = directory / f"{name}.orders"
        self._life: Life | None = None
        self._watch: asyncio.Task[None] | None = None
        self._wanted = False

    @property
    def running(self) -> bool:
        return self._life is not None and not self._life.over

    def follow(self, time: TrueTime) -> None:
        self._time = time

    async def start(self, point: str = "") -> None:
        """point: "name count", where it is to kill itself."""
        assert self._zygote is not None
        self._write(point)
        environ = {
            "HOME": str(self._directory),
            "LOG_LEVEL": "WARNING",
            "LOGS_BASE_DIRECTORY": os.devnull,
            "CHAOS_FILE": str(self._orders),
            **self._environ,
        }
        self._life = life = await Life.begin(
            self._zygote, self.args, directory=self._directory, log=self._log, environ=environ, files=self.files
        )
        self.pid = life.pid
        self.frozen = False
        self._wanted = not point
        self._watch = asyncio.create_task(self._look_after(life), name=f"watch-{self.name}")

    async def _look_after(self, life: Life) -> None:
        """A node that ends by itself is a finding, unless it could not even start because the database was away."""
        await life.ended()
        if not self._wanted or life is not self._life:
            return
        tail = self.log()[-1500:]
        if any(_AWAY.match(line) for line in tail.strip().splitlines()[-3:]):
            self.refused.append(self._time.now)
        else:
            self._history.append(Crashed(at=self._time.now, node=self.name, error=f"ended: {tail}"))
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
        if self._life is not None:
            self._life.signal(number)

    async def ended(self, within: float) -> bool:
        return self._life is None or await self._life.ended(within)

    async def bury(self) -> None:
        """Whatever is left of it ends now."""
        self._wanted = False
        if self._watch is not None:
            self._watch.cancel()
        if self._life is not None:
            await self._life.end()

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""
