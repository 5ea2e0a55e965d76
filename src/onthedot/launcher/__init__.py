"""`launch_scheduler()`: the entry point that starts a node and blocks until it is stopped."""

from __future__ import annotations

from onthedot.launcher.launch import launch_scheduler

__all__ = ["launch_scheduler"]
