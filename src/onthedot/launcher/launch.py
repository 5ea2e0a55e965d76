"""Starts one node, or several under a supervisor, from the settings."""

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
    """Start the API, the dashboard and the engine in this process, and block until SIGTERM or Ctrl-C.

    `settings` are the settings in lower case. They override the settings file and the environment:
    `launch_scheduler(port=9000, jobs_file_path="jobs.yaml", store="postgresql://…")`.
    """
    chosen = load_settings(settings, file=settings_file)
    if chosen.workers > 1 and chosen.is_sqlite:
        raise SettingsError(
            f"WORKERS is {chosen.workers}, but SQLite supports only one process. "
            "Use --store postgresql://… for several, or omit --workers"
        )
    if chosen.metrics_port is not None and chosen.metrics_port + chosen.workers - 1 > 65535:
        raise SettingsError(
            f"METRICS_PORT is {chosen.metrics_port} and WORKERS is {chosen.workers}: each worker has its own port, "
            "and the last would be above 65535"
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
    """The jobs file, if there is one. A path that was set explicitly must exist."""
    path = settings.jobs_file_path
    if not path.exists() and "jobs_file_path" not in settings.given:
        return None
    return read_jobs_file(path, settings.supported_extensions, source=settings.jobs_source)


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop if installed: it halves the cost of a webhook."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
