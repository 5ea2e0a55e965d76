"""Warnings about a loaded jobs file: jobs that were not applied or will fail, and the command that fixes it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from onthedot.jobsfile import JobsFile
from onthedot.main import Prepared
from onthedot.model.targets import Target
from onthedot.service import DEFAULT_TENANT
from onthedot.store import SyncReport

__all__ = ["adopt_command", "all_remarks", "failing", "remarks_on"]

DEFAULT_URL = "http://127.0.0.1:8000"
NAMED_MOST = 5
TOLD_MOST = 20


def all_remarks(prepared: Prepared, jobs: JobsFile, report: SyncReport) -> list[str]:
    """All warnings; reads the source files of functions. A node that executes nothing skips the check for code that is
    missing: the code may be on other nodes."""
    settings = prepared.settings
    told = remarks_on(jobs, report, settings.jobs_file_path, settings.url if "api" in settings.roles else None)
    if "executor" in settings.roles:
        told += failing(jobs, lambda target: prepared.targets.problem(target, DEFAULT_TENANT))
    return told


def failing(jobs: JobsFile, problem: Callable[[Target], str | None]) -> list[str]:
    """Jobs of the file that will fail because a module, function or program does not exist."""
    why: dict[str, list[str]] = {}
    for spec in jobs.specs:
        if (found := problem(spec.target)) is not None:
            why.setdefault(found, []).append(str(spec.key))
    told = [f"{_named(keys)} will fail: {found}" for found, keys in why.items()]
    return (
        told if len(told) <= TOLD_MOST else [*told[:TOLD_MOST], f"and {len(told) - TOLD_MOST} more problems like these"]
    )


def remarks_on(
    jobs: JobsFile, report: SyncReport, path: Path, server: str | None, *, pruned: bool = False
) -> list[str]:
    """`server`: its URL, for the commands. `pruned`: what was loaded from this very file was removed already, so that
    the rest is of another file with its name, or of this one when it was elsewhere."""
    found = []
    if report.held:
        whose = ", ".join(sorted({owner.partition(" (job ")[0] for owner in report.held.values()}))
        found.append(
            f"not applied, because owned by {whose}: {_named(list(report.held))} in {jobs.name}. "
            f"If you renamed the file, run `{adopt_command(jobs, path, server)}` to take over ownership"
        )
    if report.kept:
        kept = (
            f"no longer in {jobs.name} but not deleted, since others may share this database: {_named(report.kept)} of "
            f"source {jobs.source}. "
        )
        if pruned:
            delete = f"onthedot jobs delete KEY{_at(server)}"
            kept += (
                "They were not loaded from this file: another file of this name may have them. Set a `source` of its "
                f"own in each file to keep their jobs apart; run `{delete}` for a job that no file has"
            )
        else:
            prune = f"onthedot jobs apply {shlex.quote(str(path))} --prune{_at(server)}"
            kept += (
                f"Run `{prune}` to delete those that were loaded from this file, or set `source` in the file to delete "
                "at startup"
            )
        found.append(kept)
    return found


def adopt_command(jobs: JobsFile, path: Path, server: str | None) -> str:
    source = f" --source {shlex.quote(jobs.source)}" if jobs.named else ""
    return f"onthedot jobs apply {shlex.quote(str(path))} --adopt{source}{_at(server)}"


def _at(server: str | None) -> str:
    return "" if server in (None, DEFAULT_URL) else f" --url {shlex.quote(str(server))}"


def _named(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - NAMED_MOST} more" if len(keys) > NAMED_MOST else ""
    return f"{len(keys)} job{'s' if len(keys) != 1 else ''} ({', '.join(keys[:NAMED_MOST])}{more})"
