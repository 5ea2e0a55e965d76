"""A kind of target whose work survives its node: a process of its own session, found again by a directory with its
name. A plug-in as anybody could write one; real nodes load it by its entry point.

A place is a directory, and the work of one try is `<place>/<run id>-<try>`: `pid` (with the start time, because numbers
come again), `started`, `output`, `exit`, and `recorded` once its result is committed. Who writes `pid` first does the
work, so that it can be asked for as often as it must.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from onthedot.model.run import Outcome
from onthedot.model.targets import TargetSpec, TargetSummary
from onthedot.targets.contract import NOT_BEGUN, Call, Ended, Profile
from onthedot.targets.coroutine import CoroutineKind
from tests.services import detached_supervisor
from tests.services.detached_supervisor import claim, start_time
from tests.services.waiting import until

__all__ = ["Detached", "DetachedTarget", "DetachedWork", "install"]

NOBODY = "0 0"
EVER = 86_400.0
KEPT = 600.0
"""Seconds for which ended work keeps its name: somebody who was frozen may be about to start it."""
ROOT = Path(__file__).resolve().parents[2]


class DetachedTarget(TargetSpec, frozen=True, kw_only=True, tag="detached"):
    place: str
    argv: list[str]

    def capability(self) -> str:
        return f"detached:{self.place}"

    def summary(self) -> TargetSummary:
        return TargetSummary("detached", self.place, f"detached at {self.place}")


class DetachedWork:
    """What one try has started, as anybody can see it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def _read(self, name: str) -> str | None:
        try:
            return (self.directory / name).read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None

    @property
    def is_claimed(self) -> bool:
        return (self.directory / "pid").exists()

    @property
    def pid(self) -> int | None:
        """Of the process that does it, while it is there."""
        pid, _, began = (self._read("pid") or NOBODY).partition(" ")
        return int(pid) if int(pid) and start_time(int(pid)) == began else None

    @property
    def started(self) -> float | None:
        """On the monotonic clock, which all processes of a machine share."""
        text = self._read("started")
        return None if text is None else float(text)

    @property
    def code(self) -> int | None:
        text = self._read("exit")
        return None if text is None else int(text)

    @property
    def is_over(self) -> bool:
        return self.code is not None or (self.is_claimed and self.pid is None)

    def create(self, argv: Sequence[str]) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        supervisor = [sys.executable, "-S", detached_supervisor.__file__, str(self.directory), *argv]
        subprocess.run(supervisor, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

    def kill(self) -> None:
        """What has not begun never will."""
        self.directory.mkdir(parents=True, exist_ok=True)
        claim(self.directory, NOBODY)
        if (pid := self.pid) is not None:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    async def end(self) -> None:
        self.kill()
        await until(lambda: self.pid is None, "it is dead", EVER)

    def read(self, after: int) -> bytes:
        try:
            with (self.directory / "output").open("rb") as output:
                output.seek(after)
                return output.read()
        except FileNotFoundError:
            return b""


class Detached(CoroutineKind):
    spec = DetachedTarget
    profile = Profile(capacity=8, survives_node=True, stop_within=10.0)

    def __init__(self, places: Mapping[str, Path], dies: Path | None = None) -> None:
        """`dies`: if this file is there, the node is killed right before it starts any work; the file goes with it."""
        self._places = dict(places)
        self._dies = dies

    @classmethod
    def kind(cls, settings: Mapping[str, Any]) -> Detached:
        dies = settings.get("dies")
        places = {name: Path(path) for name, path in settings.get("places", {}).items()}
        return cls(places, None if dies is None else Path(dies))

    def capabilities(self) -> list[str]:
        return [f"detached:{place}" for place in self._places]

    def _work(self, call: Call) -> DetachedWork:
        assert isinstance(call.target, DetachedTarget)
        return DetachedWork(self._places[call.target.place] / f"{call.run_id}-{call.try_number}")

    async def send(self, call: Call) -> Outcome | Ended:
        work = self._work(call)
        assert isinstance(call.target, DetachedTarget)
        try:
            if not work.is_claimed and call.stopped is None:
                if not call.may_create:
                    return Outcome(kind="unknown", error="there is nothing of it, and nobody knows whether there was")
                if not call.may_begin():
                    return NOT_BEGUN
                self._die()
                call.begun(time.monotonic())
                await asyncio.to_thread(work.create, call.target.argv)
            await until(lambda: work.started is not None or work.is_over, "it has started", EVER)
            if work.started is not None:
                call.begun(work.started)
            await self._follow(work, call)
        except asyncio.CancelledError:
            if call.stopped in ("cancelled", "timeout"):
                if work.started is not None:
                    call.begun(work.started)
                await work.end()
            raise
        return _outcome(work)

    def _die(self) -> None:
        if self._dies is not None and self._dies.exists():
            self._dies.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    async def _follow(self, work: DetachedWork, call: Call) -> None:
        """All of its output from the beginning, whoever has read it before, and then its end."""
        seen = 0

        def ended() -> bool:
            nonlocal seen
            is_over = work.is_over  # before its last words are read
            if text := work.read(seen):
                seen += len(text)
                call.log(text.decode(errors="replace"))
            return is_over

        await until(ended, "it ends", EVER)

    def recorded(self, call: Call) -> None:
        with suppress(FileNotFoundError):
            (self._work(call).directory / "recorded").touch()

    async def inventory(self) -> Sequence[str]:
        return [
            directory.name
            for place in self._places.values()
            if place.is_dir()
            for directory in place.iterdir()
            if not (mark := directory / "recorded").exists() or time.time() - mark.stat().st_mtime > KEPT
        ]

    async def remove(self, name: str) -> None:
        for place in self._places.values():
            if (place / name).is_dir():
                await DetachedWork(place / name).end()
                shutil.rmtree(place / name)


def _outcome(work: DetachedWork) -> Outcome:
    code = work.code
    if code is None:
        return Outcome(kind="error", retryable=True, error="killed")
    detail = {"exit_code": code}
    if code:
        return Outcome(kind="error", retryable=True, error=f"exit code {code}", detail=detail)
    return Outcome(kind="ok", detail=detail)


def install(directory: Path) -> str:
    """The plug-in as an installed distribution; returns the PYTHONPATH by which a process finds it."""
    metadata = directory / "detached-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: detached\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[onthedot.targets]\ndetached = {__name__}:Detached\n")
    return f"{directory}{os.pathsep}{ROOT}"
