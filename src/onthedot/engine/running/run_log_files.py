"""Writes log files: takes what waits, groups it by file, writes it off the loop, repeats.

A log that can't be written (disk full, no permission) never stops a firing; it is said once per batch.
"""

from __future__ import annotations

import os
from pathlib import Path

from onthedot.engine.mailbox import Signal
from onthedot.engine.ports import Offload
from onthedot.telemetry import emit

__all__ = ["MOST_WAITING", "LogFiles", "remove_older"]

MOST_WAITING = 16 * 1024 * 1024
"""Characters that may wait for a slow disk. A function that floods its output loses the rest, and the file says so."""


_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class LogFiles:
    def __init__(self, directory: Path, offload: Offload) -> None:
        self.directory = directory
        self._offload = offload
        self._waiting: dict[Path, list[str]] = {}
        self._size = 0
        self._some = Signal()
        self._writing = False

    @property
    def idle(self) -> bool:
        return not self._waiting and not self._writing

    def add(self, path: Path, text: str) -> None:
        """Never waits: a target's output comes from a callback."""
        lines = self._waiting.setdefault(path, [])
        if self._size + len(text) > MOST_WAITING:
            if not lines or lines[-1] is not _LOST:
                lines.append(_LOST)
            return
        lines.append(text)
        self._size += len(text)
        self._some.set()

    async def step(self) -> None:
        await self._some.wait()
        await self.flush()

    async def flush(self) -> None:
        batch, self._waiting, self._size = self._waiting, {}, 0
        if not batch:
            return
        self._writing = True
        try:
            await self._offload(lambda: _append(batch))
        finally:
            self._writing = False

    async def remove_older(self, before: float) -> None:
        await self._offload(lambda: remove_older(self.directory, before))


_LOST = "\n… output lost: the disk could not keep up\n"


def _append(batch: dict[Path, list[str]]) -> None:
    failure: tuple[Path, OSError] | None = None
    for path, texts in batch.items():
        data = "".join(texts).encode("utf-8", "replace")
        try:
            _append_one(path, data)
        except OSError as error:
            failure = (path, error)
    if failure is not None:
        emit("log.unwritten", path=str(failure[0]), error=str(failure[1]))


def _append_one(path: Path, data: bytes) -> None:
    """What jobs print is not for everybody on the machine: 0640, in folders of 0750."""
    try:
        descriptor = os.open(path, _APPENDING, 0o640)
    except FileNotFoundError:
        _make_folder(path.parent)
        descriptor = os.open(path, _APPENDING, 0o640)
    with os.fdopen(descriptor, "ab") as file:
        file.write(data)


def _make_folder(folder: Path) -> None:
    """Each one that is missing; `mkdir(parents=True)` would let everybody into all but the last."""
    if not folder.parent.exists():
        _make_folder(folder.parent)
    folder.mkdir(mode=0o750, exist_ok=True)


def remove_older(directory: Path, before: float) -> None:
    """Logs go with RETENTION: files last written before this instant (seconds since the epoch), then empty folders."""
    if not directory.is_dir():
        return
    for folder in directory.iterdir():
        if folder.is_symlink() or not folder.is_dir():
            continue
        for file in folder.glob("*.log"):
            try:
                if file.stat().st_mtime < before:
                    file.unlink()
            except OSError:
                continue
        try:
            folder.rmdir()
        except OSError:  # not empty
            continue
