"""Reloads the jobs file when its modification time changes, and on SIGHUP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from onthedot.clock import Clock
from onthedot.errors import OnTheDotError, StoreUnavailable
from onthedot.jobsfile import JobsFile, read_jobs_file
from onthedot.settings import Settings
from onthedot.store import SyncReport

__all__ = ["JobsWatch"]

LOOK_EVERY = 2.0
Remarks = Callable[[JobsFile, SyncReport], list[str]]
Apply = Callable[[JobsFile], Awaitable[SyncReport]]
_log = structlog.stdlib.get_logger("onthedot.jobsfile")


class JobsWatch:
    def __init__(
        self,
        settings: Settings,
        apply: Apply,
        asked: asyncio.Event,
        clock: Clock,
        *,
        remarks: Remarks = lambda jobs, report: [],
    ) -> None:
        self._path = settings.jobs_file_path
        self._extensions = settings.supported_extensions
        self._source = settings.jobs_source
        self._apply = apply
        self._remarks = remarks
        self._asked = asked
        self._clock = clock
        self._seen = stamp(self._path)

    async def run(self) -> None:
        while True:
            await self.step()

    async def step(self) -> None:
        """Wait for the signal or the next check; reload the file if it changed or a reload was requested."""
        asked = await self._told()
        now = stamp(self._path)
        if not asked and (now == self._seen or now is None):  # an editor may remove the file for a moment
            return
        self._seen = now
        await self.load()

    async def load(self) -> None:
        """Apply the file. An invalid file is logged and changes nothing."""
        try:
            jobs = await asyncio.to_thread(read_jobs_file, self._path, self._extensions, source=self._source)
            report = await self._apply(jobs)
        except StoreUnavailable as error:
            self._seen = None  # retry until it is applied
            _log.warning("jobs file not applied: the store is unavailable", file=str(self._path), error=str(error))
            return
        except OnTheDotError as error:
            _log.error("jobs file not applied: it is invalid", file=str(self._path), error=str(error))
            return
        _log.info(
            "jobs file applied",
            file=str(self._path),
            created=len(report.created),
            updated=len(report.updated),
            removed=len(report.removed),
        )
        for remark in await asyncio.to_thread(self._remarks, jobs, report):
            _log.warning(remark)

    async def _told(self) -> bool:
        try:
            async with self._clock.timeout(LOOK_EVERY):
                await self._asked.wait()
        except TimeoutError:
            return False
        self._asked.clear()
        return True


def stamp(path: Path) -> tuple[int, int] | None:
    """Modification time and size; None if the file does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
