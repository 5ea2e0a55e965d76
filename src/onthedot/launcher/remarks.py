"""What a person should know about a jobs file that was loaded: jobs left alone, and the command that helps."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from onthedot.jobsfile import JobsFile
from onthedot.store import SyncReport

__all__ = ["remarks_on"]

NAMED_MOST = 5


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
