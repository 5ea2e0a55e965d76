"""From settings to a process that serves: one node on one loop, or several under a supervisor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from onthedot.errors import SettingsError
from onthedot.jobsfile import JobsFile, read_jobs_file
from onthedot.settings import Settings, load_settings

__all__ = ["fast_loop", "jobs_file_of", "launch_scheduler"]


def launch_scheduler(settings_file: Path | str | None = None, **settings: Any) -> None:
    """Start API, page and engine in this process and block until SIGTERM or Ctrl-C.

    `settings` are those of the settings file, in lower case, and win over it: `launch_scheduler(port=9000,
    jobs_file_path="jobs.yaml", store="postgresql://…")`.
    """
    chosen = load_settings(settings, file=settings_file)
    if chosen.workers > 1 and chosen.is_sqlite:
        raise SettingsError(
            f"WORKERS is {chosen.workers}, but SQLite is for one process. "
            "Use --store postgresql://… for several, or leave --workers out"
        )
    jobs = jobs_file_of(chosen)
    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        if chosen.workers > 1:
            from onthedot.launcher.supervisor import supervise

            runner.run(supervise(chosen, jobs))
        else:
            from onthedot.launcher.serving import serve

            runner.run(serve(chosen, jobs))


def jobs_file_of(settings: Settings) -> JobsFile | None:
    """The jobs file, if there is one. One that was named on purpose must be there."""
    path = settings.jobs_file_path
    if not path.exists() and "jobs_file_path" not in settings.given:
        return None
    return read_jobs_file(path, settings.supported_extensions, source=settings.jobs_source)


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where there is one: it halves the cost of a webhook."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
