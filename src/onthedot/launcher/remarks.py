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

__all__ = ["all_remarks", "failing", "remarks_on"]

NAMED_MOST = 5
TOLD_MOST = 20


def all_remarks(prepared: Prepared, jobs: JobsFile, report: SyncReport) -> list[str]:
    """All warnings; reads the source files of functions. A node that executes nothing skips the check for code that is
    missing: the code may be on other nodes."""
    told = remarks_on(jobs, report, prepared.settings.jobs_file_path)
    if "executor" in prepared.settings.roles:
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


def remarks_on(jobs: JobsFile, report: SyncReport, path: Path) -> list[str]:
    found = []
    file = shlex.quote(str(path))
    if report.held:
        whose = ", ".join(sorted({owner.partition(" (job ")[0] for owner in report.held.values()}))
        adopt = f"onthedot jobs apply {file} --adopt" + (f" --source {shlex.quote(jobs.source)}" if jobs.named else "")
        found.append(
            f"not applied, because owned by {whose}: {_named(list(report.held))} in {jobs.name}. "
            f"If you renamed the file, run `{adopt}` to take over ownership"
        )
    if report.kept:
        prune = f"onthedot jobs apply {file} --source {shlex.quote(jobs.source)} --prune"
        found.append(
            f"no longer in {jobs.name} but not deleted, since others may share this database: {_named(report.kept)} of "
            f"source {jobs.source}. Run `{prune}` to delete, or set `source` in the file to delete at startup"
        )
    return found


def _named(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - NAMED_MOST} more" if len(keys) > NAMED_MOST else ""
    return f"{len(keys)} job{'s' if len(keys) != 1 else ''} ({', '.join(keys[:NAMED_MOST])}{more})"
