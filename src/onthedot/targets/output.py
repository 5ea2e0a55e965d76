"""What a process prints, as it comes: one pipe per run, read on the loop, bounded.

The pipe is read until the process has ended and the pipe is empty, not until it is closed: a grandchild that keeps it
open can't hold up the run. Output over the limit is dropped, and from then on the pipe is emptied slowly, so that a
process that floods is held back by the full pipe instead of keeping the node's loop busy.
"""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Callable

__all__ = ["OUTPUT_LIMIT", "Output"]

OUTPUT_LIMIT = 8 * 1024 * 1024
_PORTION = 64 * 1024
_PAUSE = 0.005  # about 13 MB/s


class Output:
    """`write_fd` goes to the process; `close_write()` once it has it; `finish()` when the process is done with it."""

    def __init__(self, log: Callable[[str], None], *, limit: int = OUTPUT_LIMIT) -> None:
        self._log, self._left = log, limit
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._loop = asyncio.get_running_loop()
        self._later: asyncio.TimerHandle | None = None
        self._read_fd, self.write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        self._loop.add_reader(self._read_fd, self._readable)

    def close_write(self) -> None:
        if self.write_fd >= 0:
            os.close(self.write_fd)
            self.write_fd = -1

    def finish(self) -> None:
        """Take what is still in the pipe, and let go of it. May be called twice."""
        self.close_write()
        if self._read_fd < 0:
            return
        rest = _PORTION * 32  # a pipe holds 64 KB, 1 MB at most: who keeps writing does not keep us
        while rest > 0 and (portion := self._read()):
            rest -= len(portion)
            self._pass_on(portion)
        self._pass_on(b"", final=True)
        self._stop_reading()
        os.close(self._read_fd)
        self._read_fd = -1

    def _readable(self) -> None:
        portion = self._read()
        if portion == b"":
            self._stop_reading()  # closed at the other end
        elif portion is not None:
            self._pass_on(portion)
            if self._left <= 0:
                self._stop_reading()
                self._later = self._loop.call_later(_PAUSE, self._readable)

    def _read(self) -> bytes | None:
        try:
            return os.read(self._read_fd, _PORTION)
        except BlockingIOError:
            if self._left <= 0 and self._later is not None:
                self._later = self._loop.call_later(_PAUSE, self._readable)
            return None

    def _pass_on(self, portion: bytes, *, final: bool = False) -> None:
        if self._left <= 0:
            return
        text = self._decoder.decode(portion[: self._left], final)
        self._left -= len(portion)
        if text:
            self._log(text)
        if self._left <= 0:
            self._log("\n… the output is over its limit, the rest is dropped\n")

    def _stop_reading(self) -> None:
        self._loop.remove_reader(self._read_fd)
        if self._later is not None:
            self._later.cancel()
            self._later = None
