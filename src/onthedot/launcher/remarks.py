"""What a person should know about a jobs file that was loaded: jobs left alone, and the command that helps."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from onthedot.jobsfile import JobsFile
from onthedot.main import Prepared
from onthedot.model.target import Target
from onthedot.service import DEFAULT_TENANT
from onthedot.store import SyncReport

__all__ = ["all_remarks", "failing", "remarks_on"]

NAMED_MOST = 5
TOLD_MOST = 20


def all_remarks(prepared: Prepared, jobs: JobsFile, report: SyncReport) -> list[str]:
    """Reads the files of modules. A node that runs nothing does not say what would fail: the code is elsewhere."""
    told = remarks_on(jobs, report, prepared.settings.jobs_file_path)
    if "executor" in prepared.settings.roles:
        told += failing(jobs, lambda target: prepared.targets.problem(target, DEFAULT_TENANT))
    return told


def failing(jobs: JobsFile, problem: Callable[[Target], str | None]) -> list[str]:
    """Jobs of the file that will fail, and why: a module, function or program that is not there."""
    why: dict[str, list[str]] = {}
    for spec in jobs.specs:
        if (found := problem(spec.target)) is not None:
            why.setdefault(found, []).append(str(spec.key))
    told = [f"{_named(keys)} will fail: {found}" for found, keys in why.items()]
    return told if len(told) <= TOLD_MOST else [*told[:TOLD_MOST], f"and {len(told) - TOLD_MOST} more such reasons"]


def remarks_on(jobs: JobsFile, report: SyncReport, path: Path) -> list[str]:
    found = []
    file = shlex.quote(str(path))
    if report.held:
        whose = ", ".join(sorted({owner.partition(" (job ")[0] for owner in report.held.values()}))
        adopt = f"onthedot jobs apply {file} --adopt" + (f" --source {shlex.quote(jobs.source)}" if jobs.named else "")
        found.append(
            f"{_named(list(report.held))} in {jobs.name} belong to {whose} and were left as they are. "
            f"If the file was renamed, it takes them over by `{adopt}`"
        )
    if report.kept:
        prune = f"onthedot jobs apply {file} --source {shlex.quote(jobs.source)} --prune"
        found.append(
            f"{_named(report.kept)} of {jobs.source} are no longer in {jobs.name} and were kept: others may share this "
            f"database. `{prune}` removes them; a `source` at the top of the file lets the next start do it"
        )
    return found


def _named(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - NAMED_MOST} more" if len(keys) > NAMED_MOST else ""
    return f"{len(keys)} job{'s' if len(keys) != 1 else ''} ({', '.join(keys[:NAMED_MOST])}{more})"
