"""What a test asks about processes it did not start itself."""

from __future__ import annotations

import contextlib

import psutil


def gone(pid: int) -> bool:
    """Ended; a zombie that waits for its parent has ended too."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True
