"""`onthedot` as a real process, for the tests of a cluster and of the whole product."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.services.orphan_reaper import orphan_reaper
from tests.services.preloaded import ForkedProcess, fits, preloaded
from tests.services.waiting import until

__all__ = ["COMMAND", "NodeProcess"]

COMMAND = ONTHEDOT = Path(sys.executable).with_name("onthedot")


class NodeProcess:
    """One `onthedot` command in its own process group and directory, with an environment of its own."""

    def __init__(
        self,
        *args: str,
        directory: Path,
        port: int,
        env: Mapping[str, str] | None = None,
        descriptors: int | None = None,
    ) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.directory = directory
        self._log = directory / f"onthedot-{port}.out"
        environ = {"PATH": os.environ["PATH"], "HOME": str(directory), "PYTHONUNBUFFERED": "1", **(env or {})}
        self._process = self._started(args, environ, descriptors)
        orphan_reaper.runs(-self.pid, signal.SIGKILL)

    def _started(
        self, args: Sequence[str], environ: Mapping[str, str], descriptors: int | None
    ) -> subprocess.Popen[bytes] | ForkedProcess:
        self._log.touch()
        if COMMAND == ONTHEDOT and fits(environ):
            return preloaded.start(args, environ=environ, directory=self.directory, log=self._log, files=descriptors)
        with self._log.open("ab") as out:
            return subprocess.Popen(
                [*_limited(descriptors), COMMAND, *args],
                cwd=self.directory,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @classmethod
    async def serve(
        cls,
        *args: str,
        directory: Path,
        port: int,
        env: Mapping[str, str] | None = None,
        descriptors: int | None = None,
    ) -> Self:
        """`onthedot serve` on `port`, returned when it says that it is ready. `descriptors`: it may open no more."""
        arguments = ("serve", "--port", str(port), *args)
        node = cls(*arguments, directory=directory, port=port, env=env, descriptors=descriptors)
        try:
            await node.ready()
        except BaseException:
            node.kill()
            raise
        return node

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def output(self) -> str:
        return self._log.read_text(errors="replace")

    async def ready(self, within: float = 30.0) -> None:
        """Wait until /readyz answers 200."""

        async def ready_or_ended() -> bool:
            return self.exit_code is not None or await asyncio.to_thread(self._answers)

        try:
            await until(ready_or_ended, "onthedot is ready", within)
        except AssertionError as late:
            raise AssertionError(f"{late}\n{self.output()[-4000:]}") from None
        if self.exit_code is not None:
            raise AssertionError(f"onthedot ended with {self.exit_code}:\n{self.output()[-4000:]}")

    def signal(self, number: signal.Signals) -> None:
        """To this process alone: SIGTERM stops it in order, SIGSTOP freezes it, SIGKILL is the crash."""
        self._process.send_signal(number)

    async def exited(self, within: float = 20.0) -> int:
        """Wait for the end and give the exit code."""
        return await asyncio.to_thread(self._process.wait, within)

    async def stop(self, within: float = 20.0) -> int:
        """The orderly stop: SIGTERM, then wait."""
        self.signal(signal.SIGTERM)
        return await self.exited(within)

    def kill(self) -> None:
        """kill -9 of the whole process group, the workers it started included. Harmless when it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        orphan_reaper.ended(-self.pid)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def _limited(descriptors: int | None) -> list[str]:
    return [] if descriptors is None else ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh"]
