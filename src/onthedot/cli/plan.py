"""`onthedot plan`: what a jobs file would do to the firings of its jobs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onthedot.cli.options import ApiKey, AsJson, Server, connected
from onthedot.cli.output import print_json, say, table

if TYPE_CHECKING:
    from onthedot.model.change_plan import ChangePlan, PlannedJob

__all__ = ["plan"]

SHOWN, FIRST = 20, 3  # jobs, and firings of each


def plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Jobs file: .json, .yaml or .toml")],
    days: Annotated[int, typer.Option(min=1, max=366, help="How far to look ahead")] = 30,
    prune: Annotated[bool, typer.Option("--prune", help="Include jobs that `jobs apply --prune` would delete")] = False,
    source: Annotated[
        str | None, typer.Option(help="Source name for the file's jobs [default: the file's `source`, else its name]")
    ] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Show which firings applying a jobs file would add, move or remove, and the busiest minutes. Changes nothing."""
    from onthedot.errors import Invalid
    from onthedot.jobsfile import read_jobs_file
    from onthedot.settings import load_settings

    jobs = read_jobs_file(file, load_settings().supported_extensions, source=source)
    with connected(server, key) as client:
        try:
            removed: list[str] = []
            if prune:
                more = {"file": jobs.origin} if jobs.origin is not None else {}
                removed = client.sync_jobs(jobs.source, jobs.specs, prune=True, dry_run=True, **more).removed
            found = client.plan(jobs=jobs.specs, removed=removed, days=days)
        except Invalid as invalid:
            raise jobs.located(invalid) from None
    print_json(found) if as_json else _show(found)


def _show(found: ChangePlan) -> None:
    changed = [job for job in found.jobs if job.change != "unchanged"]
    table(
        ("job", "change", "before", "after", "added", "moved", "removed"),
        (
            (job.key or job.name, job.change, job.before, job.after, job.added, job.moved, job.removed)
            for job in changed
        ),
        empty=f"No firings change until {found.until}.",
    )
    for job in changed[:SHOWN]:
        for line in _first(job):
            say(f"{job.key or job.name}: {line}")
    table(
        ("busiest minute", "starts", "before"),
        ((busy.at, busy.after, busy.before) for busy in found.busiest),
        empty="No job fires in the next 24 hours.",
    )
    if not found.complete:
        say("Not everything was computed: there are too many jobs.")


def _first(job: PlannedJob) -> list[str]:
    """The first firings that differ, in order of time."""
    found = [
        *((moved.before, f"{moved.before} → {moved.after}") for moved in job.first_moved),
        *((at, f"+ {at}") for at in job.first_added),
        *((at, f"- {at}") for at in job.first_removed),
    ]
    return [line for _, line in sorted(found)[:FIRST]]
