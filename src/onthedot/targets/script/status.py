"""What bubblewrap tells while it works: one JSON object a line, first the child, at last its exit code."""

from __future__ import annotations

import asyncio
import os

import msgspec

__all__ = ["Status"]

_MOST = 16 * 1024


class _Line(msgspec.Struct, rename="kebab"):
    child_pid: int | None = None
    exit_code: int | None = None


class Status:
    """Reads a pipe, and owns it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._text = b""
        self._child: int | None = None
        self._exit_code: int | None = None
        self._news = asyncio.Event()
        self._is_over = False
        self._loop = asyncio.get_running_loop()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    async def child(self) -> int | None:
        """None: it ended before there was one."""
        while self._child is None and not self._is_over:
            self._news.clear()
            await self._news.wait()
        return self._child

    async def exit_code(self) -> int | None:
        """For when bubblewrap has ended. None: the program was never executed, or its end is not known."""
        if not self._is_over:
            self._read()
        return self._exit_code

    def close(self) -> None:
        if self._descriptor >= 0:
            self._end()
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self) -> None:
        try:
            portion = os.read(self._descriptor, _MOST)
        except BlockingIOError:
            return
        if not portion or len(self._text) > _MOST:
            self._end()
            return
        *lines, self._text = (self._text + portion).split(b"\n")
        for line in lines:
            try:
                told = msgspec.json.decode(line, type=_Line)
            except msgspec.DecodeError:
                continue
            self._child = self._child or told.child_pid
            if told.exit_code is not None:
                self._exit_code = told.exit_code
        self._news.set()

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._loop.remove_reader(self._descriptor)
            self._news.set()
