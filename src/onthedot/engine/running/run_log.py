"""Each run's log: what its target wrote, and how long it took.

`<LOGS_BASE_DIRECTORY>/<job key, or id>/<run id>.log` on this node's disk, attempts appended; the last 64 KB go into the
store with the result, so that any node can show them. A one-off webhook that writes nothing gets no file: a million
timers would be a million directories.
"""

from __future__ import annotations

import re
from pathlib import Path

from onthedot.engine.running.run_log_files import LogFiles
from onthedot.model.instant import format_instant
from onthedot.model.job import KEY_PATTERN
from onthedot.model.run import ClaimedRun, Outcome

__all__ = ["TAIL", "RunLog", "log_path"]

TAIL = 64 * 1024


def log_path(directory: Path, run: ClaimedRun) -> Path:
    """Where the log of a run lies. A key that is no key (it came from an older version, or by hand) is not trusted."""
    key = run.spec.key
    folder = key if key is not None and re.match(KEY_PATTERN, key) else str(run.job_id)
    return directory / folder / f"{run.id}.log"


class RunLog:
    """The log of one attempt. Text comes in any portions, from the target, while it runs."""

    __slots__ = ("_files", "_path", "_run", "_size", "_tail", "_written")

    def __init__(self, run: ClaimedRun, files: LogFiles | None) -> None:
        self._run = run
        self._files = files
        self._path: Path | None = None
        self._tail: list[str] = []
        self._size = 0
        self._written = False

    @property
    def attempt(self) -> tuple[str, int]:
        return self._run.id, self._run.token

    @property
    def tenant(self) -> int:
        return self._run.tenant

    def tail(self) -> str:
        """The last 64 KB that were written so far."""
        self._trim()
        return self._tail[0]

    def start(self, started_at: int) -> None:
        """The attempt begins. Where a file is expected in any case, its first line is this."""
        if self._files is not None and (self._run.recurring or self._run.spec.target.writes_log):
            self._head(started_at)

    def write(self, text: str) -> None:
        if not text:
            return
        self._tail.append(text)
        self._size += len(text)
        if self._size > 4 * TAIL:
            self._trim()
        if self._files is not None:
            if self._path is None:
                self._head(None)
            self._to_file(text)

    def end(self, finished_at: int, outcome: Outcome, duration_ms: int | None) -> str | None:
        """The attempt is over; without a duration, it never began. Returns what the store keeps: the last 64 KB, None
        if nothing was written."""
        if self._path is not None:
            why = f": {outcome.error}" if outcome.error else ""
            last = self._tail[-1] if self._tail else "\n"
            gap = "" if last.endswith("\n") else "\n"
            took = "" if duration_ms is None else f" execution time {duration_ms / 1000:.3f} s"
            self._to_file(f"{gap}{format_instant(finished_at)} attempt {self._run.token} {outcome.kind}{took}{why}\n")
        if not self._tail:
            return None
        self._trim()
        return "".join(self._tail)

    def _head(self, started_at: int | None) -> None:
        assert self._files is not None
        self._path = log_path(self._files.directory, self._run)
        when = "" if started_at is None else f"{format_instant(started_at)} "
        self._to_file(f"{when}attempt {self._run.token} of {self._run.id} started\n")

    def _to_file(self, text: str) -> None:
        assert self._files is not None
        assert self._path is not None
        self._files.add(self._path, text)

    def _trim(self) -> None:
        """Bytes, not characters: the store's limit is about room. Cut between characters."""
        data = "".join(self._tail).encode("utf-8", "replace")
        kept = data[-TAIL:].decode("utf-8", "ignore") if len(data) > TAIL else data.decode()
        self._tail = [kept]
        self._size = len(kept)
