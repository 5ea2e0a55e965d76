"""The scheduler inside somebody's own program."""

from __future__ import annotations

from onthedot.embed.listeners import RunNotice
from onthedot.embed.scheduler import Scheduler

__all__ = ["RunNotice", "Scheduler"]
