"""`onthedot alerts`: incidents, and a test of a channel."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from onthedot.cli.bundles import Output, write_bundle
from onthedot.cli.group import command_group
from onthedot.cli.options import ApiKey, AsJson, Server, connected, find_job
from onthedot.cli.output import print_json, say, table, when

__all__ = ["group"]

group = command_group("Show incidents that alerts were sent for, and test channels.")


@group.command("list")
def list_(
    job: Annotated[str | None, typer.Option("--job", metavar="JOB", help="ID or key of the job")] = None,
    condition: Annotated[str | None, typer.Option(help="What was found, such as failed, late or node_lost")] = None,
    state: Annotated[str | None, typer.Option(help="open or closed [default: both]")] = None,
    since: Annotated[str | None, typer.Option("--since", help="Opened at or after this instant (RFC 3339)")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Opened at or before this instant (RFC 3339)")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=500, help="Maximum number of incidents")] = 50,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """List incidents, newest first."""
    filters = {"job": job, "condition": condition, "state": state, "since": since, "until": until}
    with connected(server, key) as client:
        given: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
        found = client.list_alerts(**given, limit=limit).items
        if job is not None and not found:  # of a job that was deleted there may be some, by its ID
            given["job"] = find_job(client, job).id
            found = client.list_alerts(**given, limit=limit).items
    if as_json:
        print_json(found)
        return
    table(
        ("id", "opened", "state", "condition", "subject", "times", "reason"),
        (
            (each.id, when(each.opened_at), each.state, each.condition, each.title, each.count, each.reason)
            for each in found
        ),
        empty="No alerts.",
        wide=("subject",),
        whole="reason",
    )


@group.command("bundle")
def bundle(
    incident: Annotated[int, typer.Argument(metavar="INCIDENT", min=1, help="ID of the incident")],
    output: Output = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Collect all that is known of an incident in one JSON file to hand on. Secrets are masked."""
    with connected(server, key) as client:
        found = client.incident_bundle(incident)
    write_bundle(found, output, as_json=as_json)


@group.command("test")
def try_channel(
    channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="Name of the channel in the server's settings")],
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Send a test message to a channel. Exit code 1 if it was not delivered."""
    with connected(server, key) as client:
        result = client.test_channel(channel)
    if as_json:
        print_json(result)
    elif result.delivered:
        say(f"Delivered to {result.channel} in {result.duration_ms} ms.")
    else:
        say(f"Not delivered to {result.channel}: {result.error}")
    if not result.delivered:
        raise typer.Exit(1)
