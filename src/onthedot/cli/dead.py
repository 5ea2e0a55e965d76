"""`onthedot dead`: list, group, redrive and discard dead letters."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from onthedot.cli.group import command_group
from onthedot.cli.options import ApiKey, AsJson, Server, connected, find_job
from onthedot.cli.output import print_json, say, table, when
from onthedot.cli.runs import runs_table

if TYPE_CHECKING:
    from onthedot.client import Client

__all__ = ["group"]

group = command_group("List, group, redrive and discard dead letters: runs that failed their last attempt.")

OfJob = Annotated[str | None, typer.Option("--job", metavar="JOB", help="Only dead letters of this job (ID or key)")]
OfCause = Annotated[str | None, typer.Option("--cause", help="Only dead letters with exactly this cause")]
Since = Annotated[str | None, typer.Option("--since", help="Only those that failed at this time or later (RFC 3339)")]
Until = Annotated[str | None, typer.Option("--until", help="Only those that failed at this time or earlier (RFC 3339)")]
Runs = Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", help="Run IDs of dead letters")]


@group.command("list")
def list_(
    job: OfJob = None,
    cause: OfCause = None,
    since: Since = None,
    until: Until = None,
    discarded: Annotated[bool, typer.Option("--discarded", help="List discarded dead letters instead")] = False,
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=1, max=500, help="Maximum number of dead letters to list")
    ] = 50,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """List dead letters, newest first."""
    with connected(server, key) as client:
        wanted = _filter(client, job, cause, since, until)
        letters = client.iter_dead(**wanted, **({"discarded": True} if discarded else {}), limit=limit)
        found = list(islice(letters, limit))  # a page may be short and not the last
    if as_json:
        print_json(found)
        return
    runs_table(found, empty="No dead letters.")


@group.command("groups")
def groups(
    job: OfJob = None,
    since: Since = None,
    until: Until = None,
    window: Annotated[
        Literal["hour", "day"] | None, typer.Option(help="Also by the time of the failure: hour or day")
    ] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Show dead letters by cause, the one that failed last first."""
    with connected(server, key) as client:
        by_time = {} if window is None else {"window": window}
        found = client.group_dead(**_filter(client, job, None, since, until), **by_time)
    if as_json:
        print_json(found)
        return
    table(
        ("count", "jobs", "first", "last", "cause"),
        ((each.count, each.jobs, when(each.first_at), when(each.last_at), each.cause) for each in found.items),
        empty="No dead letters.",
        wide=("cause",),
    )
    if not found.exact:
        say("Of the last 10,000.")


@group.command("redrive")
def redrive(
    runs: Runs = None,
    job: OfJob = None,
    cause: OfCause = None,
    since: Since = None,
    until: Until = None,
    all_: Annotated[bool, typer.Option("--all", help="Redrive all dead letters, up to --limit")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of dead letters to redrive")] = 1000,
    first: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Redrive this many first; continue only if they succeed")
    ] = None,
    rate: Annotated[int | None, typer.Option(min=1, max=10_000, help="Maximum per second")] = None,
    stop: Annotated[
        int | None, typer.Option("--stop-at-failures", min=1, max=1000, help="Stop after this many have failed again")
    ] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Retry dead letters, each as a new run.

    With --first, --rate or --stop-at-failures as a bulk operation, for all that match.
    """
    from onthedot.cli.ops import follow, one_line

    _which(runs, job, cause, since, until, all_=all_)
    with connected(server, key) as client:
        wanted = _filter(client, job, cause, since, until)
        if first is rate is stop is None:
            new = client.redrive(runs, limit=limit) if runs else client.redrive(filter=wanted, limit=limit)
        else:
            said = {name: value for name, value in (("first", first), ("stop_at_failures", stop)) if value is not None}
            chosen: dict[str, Any] = {"ids": runs} if runs else {"filter": wanted}
            ended = follow(client, client.start_operation("redrive", **chosen, params=said, rate=rate), quiet=as_json)
            print_json(ended) if as_json else say(one_line(ended))
            if ended.failed or ended.state != "done":
                raise typer.Exit(1)
            return
    if as_json:
        print_json({"runs": new})
        return
    for run in new:
        say(run)
    say(f"Created {len(new)} new run{'s' if len(new) != 1 else ''}.")


@group.command("discard")
def discard(
    runs: Runs = None,
    job: OfJob = None,
    cause: OfCause = None,
    since: Since = None,
    until: Until = None,
    all_: Annotated[bool, typer.Option("--all", help="Discard all dead letters, up to --limit")] = False,
    note: Annotated[str | None, typer.Option(help="Why")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of dead letters to discard")] = 1000,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Close dead letters with a note, without retrying them. The runs stay in the history."""
    _which(runs, job, cause, since, until, all_=all_)
    with connected(server, key) as client:
        wanted = _filter(client, job, cause, since, until)
        chosen: dict[str, Any] = {"ids": runs} if runs else {"filter": wanted}
        closed = client.discard(**chosen, note=note, limit=limit)
    if as_json:
        print_json({"discarded": closed})
        return
    say(f"Discarded {len(closed)} dead letter{'s' if len(closed) != 1 else ''}.")


def _which(runs: list[str] | None, *filters: str | None, all_: bool) -> None:
    if sum((bool(runs), any(filters), all_)) != 1:
        raise typer.BadParameter("specify exactly one of: RUN IDs, filters such as --job JOB, --all")


def _filter(client: Client, job: str | None, cause: str | None, since: str | None, until: str | None) -> dict[str, Any]:
    job_id = find_job(client, job).id if job is not None else None
    given = {"job_id": job_id, "cause": cause, "since": since, "until": until}
    return {name: value for name, value in given.items() if value is not None}
