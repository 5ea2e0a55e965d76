"""`launch_scheduler()`: the one entry point that starts a node and stays until it is told to stop."""

from __future__ import annotations

from onthedot.launcher.launch import launch_scheduler

__all__ = ["launch_scheduler"]
