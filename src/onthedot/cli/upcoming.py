"""`onthedot upcoming` and `onthedot forecast`: what is to come."""

from __future__ import annotations

from typing import Annotated

import typer

from onthedot.cli.options import ApiKey, AsJson, Server, connected
from onthedot.cli.output import facts, print_json, table, when
from onthedot.model.upcoming import UpcomingFiring

__all__ = ["forecast", "upcoming"]


def upcoming(
    until: Annotated[str | None, typer.Option(help="Firings before this instant [default: 24 hours from now]")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=500, help="Number of jobs to show")] = 50,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """List the next firing of each job, in order of time."""
    with connected(server, key) as client:
        found = client.upcoming(until=until, limit=limit)
    if as_json:
        print_json(found)
        return
    table(
        ("at", "when", "job", "name", "schedule", "target", "more"),
        (
            (
                each.at,
                when(each.at),
                each.key or each.job_id,
                each.name,
                each.schedule,
                each.target,
                _more(each),
            )
            for each in found.items
        ),
        empty=f"No jobs fire before {found.until}.",
        wide=("name", "schedule", "target"),
    )


def _more(firing: UpcomingFiring) -> str:
    if firing.more is not None:
        return str(firing.more)
    return "more than 100000" if firing.more_at_most is None else f"at most {firing.more_at_most}"


def forecast(
    hours: Annotated[int, typer.Option(min=1, max=48, help="How far to look ahead")] = 24,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Show the busiest minutes of the next hours."""
    with connected(server, key) as client:
        found = client.forecast(hours=hours)
    if as_json:
        print_json(found)
        return
    facts(
        [
            (
                "covers",
                f"{found.jobs} jobs, {found.since} to {found.until}{'' if found.complete else '; not all jobs'}",
            ),
            ("starts", sum(found.starts)),
            ("capacity", f"{found.capacity} runs at the same time"),
            ("measured", f"{found.measured_per_minute} firings in the busiest minute of the last 24 hours"),
        ]
    )
    table(
        ("minute", "starts", "jobs"),
        (
            (busy.at, busy.starts, ", ".join(f"{job.key or job.job_id} ({job.starts})" for job in busy.jobs))
            for busy in found.busiest
        ),
        empty="No job fires in this time.",
        wide=("jobs",),
    )
