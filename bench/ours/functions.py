"""What worker processes are asked to call."""

from __future__ import annotations

import os

__all__ = ["noop", "whereabouts"]


def noop() -> None:
    """Nothing: what is measured is everything around it."""


def whereabouts() -> int:
    """The process that runs it."""
    return os.getpid()
