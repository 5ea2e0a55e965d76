"""`onthedot dead`: runs that failed for good."""

from __future__ import annotations

from typing import Annotated

import typer

from onthedot.cli.group import command_group
from onthedot.cli.options import ApiKey, AsJson, Server, connected, find_job
from onthedot.cli.output import print_json, say
from onthedot.cli.runs import runs_table

__all__ = ["group"]

group = command_group("Dead letters: runs that failed after their last try.")

OfJob = Annotated[str | None, typer.Option("--job", metavar="JOB", help="Only those of this job (id or key)")]


@group.command("list")
def list_(
    job: OfJob = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=500, help="How many at most")] = 50,
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
    runs: Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", help="Ids of dead letters")] = None,
    job: OfJob = None,
    all_: Annotated[bool, typer.Option("--all", help="All there are, up to the limit")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most")] = 1000,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Run dead letters again, each as a new run."""
    if sum(map(bool, (runs, job, all_))) != 1:
        raise typer.BadParameter("say which: RUN ids, --job JOB, or --all")
    with connected(server, key) as client:
        job_id = find_job(client, job).id if job is not None else None
        new = client.redrive(runs or None, job_id=job_id, limit=limit)
    if as_json:
        print_json({"runs": new})
        return
    for run in new:
        say(run)
    say(f"{len(new)} new runs.")
