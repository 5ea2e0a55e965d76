"""What a process prints, as it comes: read from a pipe on the loop, bounded.

The pipe is read until the process has ended and the pipe is empty, not until it is closed: a grandchild that keeps it
open can't hold up the run. Output over the limit is dropped, and from then on the pipe is emptied slowly, so that a
process that floods is held back by the full pipe instead of keeping the node's loop busy.
"""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Callable

__all__ = ["OUTPUT_LIMIT", "OutputListener", "ProcessOutput"]

OUTPUT_LIMIT = 8 * 1024 * 1024
_PORTION = 64 * 1024
_PAUSE = 0.005  # about 13 MB/s


class OutputListener:
    """Hears one run out of a pipe that somebody else opened and will close. The reading end must not block."""

    def __init__(self, read_fd: int, log: Callable[[str], None], *, limit: int = OUTPUT_LIMIT) -> None:
        self._read_fd, self._log, self._left = read_fd, log, limit
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._later: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Hear it as it is printed."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._read_fd, self._readable)

    def take(self, portion: bytes, *, final: bool = False) -> None:
        """What came another way belongs here too."""
        if self._left <= 0:
            return
        text = self._decoder.decode(portion[: self._left], final)
        self._left -= len(portion)
        if text:
            self._log(text)
        if self._left <= 0:
            self._log("\n… output truncated: it exceeds the size limit\n")

    def drain(self) -> None:
        """What is still in the pipe."""
        rest = _PORTION * 32  # a pipe holds 64 KB, 1 MB at most: who keeps writing does not keep us
        while rest > 0 and (portion := self._read()):
            rest -= len(portion)
            self.take(portion)

    def stop(self) -> None:
        """That was all. May be called twice."""
        self.take(b"", final=True)
        self._stop_reading()

    def _readable(self) -> None:
        portion = self._read()
        if portion == b"":
            self._stop_reading()  # closed at the other end
            return
        if portion is not None:
            self.take(portion)
        if self._left <= 0 and self._loop is not None:
            self._loop.remove_reader(self._read_fd)
            self._later = self._loop.call_later(_PAUSE, self._readable)

    def _read(self) -> bytes | None:
        try:
            return os.read(self._read_fd, _PORTION)
        except BlockingIOError:
            return None

    def _stop_reading(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._read_fd)
            self._loop = None
        if self._later is not None:
            self._later.cancel()
            self._later = None


class ProcessOutput:
    """A pipe for one run. `write_fd` goes to the process; `close_write()` once it has it; `finish()` when the process
    is done with it."""

    def __init__(self, log: Callable[[str], None], *, limit: int = OUTPUT_LIMIT) -> None:
        self._read_fd, self.write_fd = os.pipe()
        os.set_blocking(self._read_fd, False)
        self._listener = OutputListener(self._read_fd, log, limit=limit)
        self._listener.start()

    def close_write(self) -> None:
        if self.write_fd >= 0:
            os.close(self.write_fd)
            self.write_fd = -1

    def finish(self) -> None:
        """Take what is still in the pipe, and let go of it. May be called twice."""
        self.close_write()
        if self._read_fd < 0:
            return
        self._listener.drain()
        self._listener.stop()
        os.close(self._read_fd)
        self._read_fd = -1
