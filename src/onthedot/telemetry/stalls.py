"""Detects when the event loop is blocked, for how long, and by what.

Heartbeats, firings and responses share one event loop: blocking it longer than the lease loses the node. So a timer
checks the clock every few milliseconds and counts how late it was. Delays of the whole machine do not count: a stall
counts only as far as this process used CPU time meanwhile, in the loop or in a thread that kept the interpreter lock. A
separate thread records where the loop is while it is blocked.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import FrameType

import structlog

__all__ = ["LoopWatch", "watch_loop"]

LOOK_EVERY = 0.01
TOLD_FROM = 0.1
ASK_EVERY = 0.05
FRAMES = 6
_log = structlog.stdlib.get_logger("onthedot.loop")


class LoopWatch:
    """Calls `held` with the number of seconds that the loop was blocked, each time it was."""

    def __init__(self, held: Callable[[float], None], quiet_for: float = 0.0) -> None:
        self._held = held
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._ended = threading.Event()
        self._due = self._loop.time() + LOOK_EVERY
        self._quiet_until = self._due + quiet_for
        self._burnt = time.process_time()
        self._seen: str | None = None
        self._timer = self._loop.call_at(self._due, self._look)
        self._asking = threading.Thread(target=self._ask, name="onthedot-loop-watch", daemon=True)
        self._asking.start()

    def close(self) -> None:
        self._timer.cancel()
        self._ended.set()
        self._asking.join()

    def _look(self) -> None:
        now, burnt = self._loop.time(), time.process_time()
        stall = min(now - self._due, burnt - self._burnt)
        seen, self._seen = self._seen, None
        self._due, self._burnt = now + LOOK_EVERY, burnt
        self._timer = self._loop.call_at(self._due, self._look)
        if stall > 0.001:
            self._held(stall)
        if stall >= TOLD_FROM and now > self._quiet_until:
            _log.warning("event loop blocked", seconds=round(stall, 3), at=seen or "unknown")

    def _ask(self) -> None:
        """In a separate thread: a blocked loop can't report itself."""
        while not self._ended.wait(ASK_EVERY):
            if self._loop.time() - self._due < TOLD_FROM / 2 or self._seen is not None:
                continue
            self._seen = self._whereabouts()

    def _whereabouts(self) -> str:
        frames = sys._current_frames()
        task = asyncio.current_task(self._loop)
        doing = "" if task is None else f"{task.get_name()}: "
        told = doing + _told(frames.get(self._thread_id))
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        ours = {name: ident for ident, name in names.items() if ident and name.startswith("onthedot-work")}
        return "; ".join([told, *(f"{name}: {_told(frames.get(ident))}" for name, ident in ours.items())])


def _told(frame: FrameType | None) -> str:
    """`file:line function`, innermost first; locations only, no values."""
    if frame is None:
        return ""
    lines = traceback.extract_stack(frame, limit=FRAMES)
    return " < ".join(f"{line.filename.rpartition('/')[2]}:{line.lineno} {line.name}" for line in reversed(lines))


@asynccontextmanager
async def watch_loop(held: Callable[[float], None], *, quiet_for: float = 0.0) -> AsyncIterator[LoopWatch]:
    """Watch the running loop. For `quiet_for` seconds stalls are counted but not logged."""
    watch = LoopWatch(held, quiet_for)
    try:
        yield watch
    finally:
        watch.close()
