"""`onthedot destinations`, `groups`, `stats` and `proof`: the state of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from onthedot.cli.options import ApiKey, AsJson, Server, connected
from onthedot.cli.output import ago, detail, facts, print_json, say, table, when

if TYPE_CHECKING:
    from onthedot.model.destination import DestinationDetail
    from onthedot.model.proof import Proof
    from onthedot.model.series import StatsSeries

__all__ = ["destinations", "groups", "proof", "stats"]


def destinations(
    destination: Annotated[
        str | None,
        typer.Argument(metavar="[DESTINATION]", help="Only this one, with its jobs: https://example.com, or a broker"),
    ] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """List destinations of webhooks: circuit breakers, calls in flight, and runs that wait for them."""
    with connected(server, key) as client:
        one = None if destination is None else client.get_destination(destination)
        found = [] if one is not None else client.list_destinations()
    if one is not None:
        print_json(one) if as_json else _show_destination(one)
        return
    if as_json:
        print_json(found)
        return
    table(
        ("destination", "kind", "breaker", "since", "next probe", "failures", "in flight", "waiting", "waiting since"),
        (
            (
                each.destination,
                each.kind,
                each.breaker.replace("_", " "),
                when(each.since) if each.since is not None else "",
                when(each.next_probe) if each.next_probe is not None else "",
                each.failures,
                each.in_flight,
                each.waiting,
                when(each.waiting_since) if each.waiting_since is not None else "",
            )
            for each in found
        ),
        empty="No destinations are being called, and no runs wait for one.",
        wide=("destination",),
    )


def _show_destination(found: DestinationDetail) -> None:
    facts(
        [
            ("destination", found.destination),
            ("kind", found.kind),
            ("breaker", found.breaker.replace("_", " ")),
            ("since", when(found.since) if found.since is not None else None),
            ("next probe", when(found.next_probe) if found.next_probe is not None else None),
            ("failures", found.failures),
            ("in flight", found.in_flight),
            ("calls", f"{found.per_second}/s" if found.per_second is not None else None),
            ("p50", ago(found.p50_ms) if found.p50_ms is not None else None),
            ("p99", ago(found.p99_ms) if found.p99_ms is not None else None),
            ("waiting", found.waiting),
        ]
    )
    table(
        ("job", "key", "state", "last run", "next run"),
        (
            (job.id, job.key or "", job.state, job.last_status or "", when(job.next_run) if job.next_run else "")
            for job in found.jobs
        ),
        empty="No job that has not ended calls it.",
        wide=("key",),
    )
    for run in found.failed_runs:
        detail(f"failed: {run.id} {run.scheduled_for} {run.reason or ''}".rstrip())


def groups(as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """List concurrency groups: limit, running and waiting runs over all nodes."""
    with connected(server, key) as client:
        found = client.list_groups()
    if as_json:
        print_json(found)
        return
    table(
        ("group", "limit", "running", "waiting", "waiting since"),
        (
            (
                each.group if each.group is not None else f"max_running of job {each.job_id}",
                each.limit if each.limit == each.highest_limit else f"{each.limit} (others name {each.highest_limit})",
                each.running,
                each.waiting,
                when(each.waiting_since) if each.waiting_since is not None else "",
            )
            for each in found
        ),
        empty="No groups: no job with a run to come has policy.concurrency or policy.max_running.",
        wide=("group",),
    )


def stats(
    per: Annotated[
        str | None, typer.Option("--per", metavar="STEP", help="Show ended runs per minute, hour or day instead")
    ] = None,
    since: Annotated[str | None, typer.Option(help="With --per: the first step (RFC 3339)")] = None,
    until: Annotated[str | None, typer.Option(help="With --per: the end of the last step (RFC 3339)")] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Show totals: jobs by state, runs by status, due runs and dead letters."""
    from onthedot.model.series import STEPS

    if per is not None and per not in STEPS:
        raise typer.BadParameter(f"{per!r} is not one of {', '.join(STEPS)}", param_hint="--per")
    if per is None and (since or until):
        raise typer.BadParameter("needs --per", param_hint="--since" if since else "--until")
    with connected(server, key) as client:
        if per is not None:
            _series(client.stats_series(per, since=since, until=until), as_json=as_json)
            return
        found = client.stats()
    if as_json:
        print_json(found)
        return
    facts((name.replace("_", " "), _told(value)) for name, value in found.items())


def proof(as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """Show whether every slot of the last 24 hours was decided once. Exits with code 1 if not."""
    with connected(server, key) as client:
        found = client.proof()
    if as_json:
        print_json(found)
    else:
        _proof(found)
    if found.ok is False:
        raise typer.Exit(1)


def _proof(found: Proof) -> None:
    if found.ok is None:
        say("No check has ended yet. The first one starts when a node runs.")
        return
    checked = f"{found.jobs} jobs, {found.since} to {found.until}, {when(found.checked_at)}"
    facts(
        [
            ("checked", checked if found.complete else f"{checked}; not all jobs"),
            ("expected", found.expected),
            ("decided", found.decided),
            ("waiting", found.waiting),
            ("missing", found.missing),
            ("twice", found.twice),
            ("left out", f"{found.left_out} slots before changes of their jobs"),
            *(("blind", f"{each.since} to {each.until}") for each in found.blind),
        ]
    )
    if found.offences:
        offences = ((each.job_id, each.key, each.slot, each.problem) for each in found.offences)
        table(("job", "key", "slot", "problem"), offences, empty="", wide=("key",))


def _series(found: StatsSeries, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    table(
        (found.step, "firings", "done", "failed", "cancelled", "skipped", "late p50", "late p99", "took"),
        (
            (
                point.at,
                point.firings,
                point.done,
                point.failed,
                point.cancelled,
                point.skipped,
                "" if point.lateness_p50_ms is None else ago(point.lateness_p50_ms),
                "" if point.lateness_p99_ms is None else ago(point.lateness_p99_ms),
                "" if point.duration_avg_ms is None else ago(round(point.duration_avg_ms)),
            )
            for point in found.items
        ),
        empty="No runs.",
    )


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {amount}" for name, amount in value.items()) or "none"
    return "none" if value is None else str(value)
