"""On the Dot: a job scheduler that fires on the dot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onthedot.version import __version__

if TYPE_CHECKING:
    from onthedot.embed import Scheduler
    from onthedot.launcher import launch_scheduler
    from onthedot.model.current_run import current_run

__all__ = ["Scheduler", "__version__", "current_run", "launch_scheduler"]


def __getattr__(name: str) -> Any:
    """What programs use, loaded when asked for: `onthedot --help` should not wait for an engine it does not start."""
    if name == "Scheduler":
        from onthedot.embed import Scheduler

        return Scheduler
    if name == "launch_scheduler":
        from onthedot.launcher import launch_scheduler

        return launch_scheduler
    if name == "current_run":
        from onthedot.model.current_run import current_run

        return current_run
    raise AttributeError(f"module 'onthedot' has no attribute {name!r}")
