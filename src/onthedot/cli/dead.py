"""`onthedot dead`: list and redrive dead letters."""

from __future__ import annotations

from typing import Annotated

import typer

from onthedot.cli.group import command_group
from onthedot.cli.options import ApiKey, AsJson, Server, connected, find_job
from onthedot.cli.output import print_json, say
from onthedot.cli.runs import runs_table

__all__ = ["group"]

group = command_group("List and redrive dead letters: runs that failed their last attempt.")

OfJob = Annotated[str | None, typer.Option("--job", metavar="JOB", help="Only dead letters of this job (ID or key)")]


@group.command("list")
def list_(
    job: OfJob = None,
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=1, max=500, help="Maximum number of dead letters to list")
    ] = 50,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """List dead letters, newest first."""
    with connected(server, key) as client:
        job_id = find_job(client, job).id if job is not None else None
        page = client.list_dead(job_id=job_id, limit=limit)
    if as_json:
        print_json(page.items)
        return
    runs_table(page.items, empty="No dead letters.")


@group.command("redrive")
def redrive(
    runs: Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", help="Run IDs of dead letters")] = None,
    job: OfJob = None,
    all_: Annotated[bool, typer.Option("--all", help="Redrive all dead letters, up to --limit")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of dead letters to redrive")] = 1000,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Retry dead letters, each as a new run."""
    if sum(map(bool, (runs, job, all_))) != 1:
        raise typer.BadParameter("specify exactly one of: RUN IDs, --job JOB, --all")
    with connected(server, key) as client:
        job_id = find_job(client, job).id if job is not None else None
        new = client.redrive(runs or None, job_id=job_id, limit=limit)
    if as_json:
        print_json({"runs": new})
        return
    for run in new:
        say(run)
    say(f"Created {len(new)} new run{'s' if len(new) != 1 else ''}.")
