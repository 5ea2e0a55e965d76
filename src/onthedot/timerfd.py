"""A timer of the kernel that wakes an event loop to the microsecond.

Loops count in whole milliseconds: uvloop rounds to the nearest and asks again at once for the rest, which is up to half
a millisecond of turning round before a firing; asyncio's own rounds up, and is late.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable

__all__ = ["KernelTimer"]

_MONOTONIC = 1
_FLAGS = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
_BILLION = 1_000_000_000


class _Setting(ctypes.Structure):
    """struct itimerspec: the interval (never), then the time until it expires (0: never)."""

    _fields_ = (
        ("every_s", ctypes.c_long),
        ("every_ns", ctypes.c_long),
        ("after_s", ctypes.c_long),
        ("after_ns", ctypes.c_long),
    )


# PyDLL keeps the interpreter lock: the call takes less than giving it away and getting it back.
_libc = ctypes.PyDLL(None, use_errno=True) if sys.platform == "linux" else None


class KernelTimer:
    """Calls back on the running loop. Raises OSError or NotImplementedError where there is no such thing."""

    def __init__(self, callback: Callable[[], None]) -> None:
        if _libc is None:
            raise NotImplementedError
        self._loop = asyncio.get_running_loop()
        self._callback = callback
        self._is_set = False  # since it expired
        self._setting = _Setting()
        self._at = ctypes.byref(self._setting)
        self._fd = _checked(_libc.timerfd_create(_MONOTONIC, _FLAGS))
        self._settime = _libc.timerfd_settime
        try:
            self._loop.add_reader(self._fd, self._expired)
        except BaseException:
            os.close(self._fd)
            raise

    def set(self, seconds: float) -> None:
        """Expire so long from now, instead of what was set before."""
        self._is_set = True
        self._set(int(seconds * 1e9) or 1)

    def clear(self) -> None:
        self._set(0)

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _set(self, ns: int) -> None:
        self._setting.after_s, self._setting.after_ns = divmod(ns, _BILLION)
        if self._settime(self._fd, 0, self._at, None) < 0:
            _checked(-1)

    def _expired(self) -> None:
        """Setting it anew takes back that it is readable, as reading would."""
        self._is_set = False
        try:
            self._callback()
        finally:
            if not self._is_set and self._fd >= 0:
                self.clear()


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer
