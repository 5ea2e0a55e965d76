"""`onthedot runs`: past, running and pending runs."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from onthedot.cli.bundles import Output, write_bundle
from onthedot.cli.describe import (
    curl_text,
    outcome_text,
    progress_text,
    request_text,
    response_text,
    result_text,
    trigger_text,
    value_text,
)
from onthedot.cli.group import command_group
from onthedot.cli.options import ApiKey, AsJson, Server, connected, find_job
from onthedot.cli.output import ago, detail, facts, print_json, say, table, when
from onthedot.telemetry.plain import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from onthedot.client import Client
    from onthedot.model.run import RunView

__all__ = ["group", "pause", "runs_table"]

group = command_group("List, cancel and retry runs.")

Run = Annotated[str, typer.Argument(metavar="RUN", help="ID of the run, such as 12-1763234567890")]
LOOK_AGAIN = 0.5
OVER = ("DONE", "FAILED", "CANCELLED", "SKIPPED")


@group.command("list")
def list_(
    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="Only runs of this job (ID or key)")] = None,
    status: Annotated[
        str | None,
        typer.Option(help="Only runs with this status: PENDING, EXECUTING, DONE, FAILED, CANCELLED or SKIPPED"),
    ] = None,
    since: Annotated[str | None, typer.Option(help="Only runs scheduled at or after this instant (RFC 3339)")] = None,
    until: Annotated[str | None, typer.Option(help="Only runs scheduled at or before this instant (RFC 3339)")] = None,
    q: Annotated[str | None, typer.Option("-q", "--error", help="Only runs whose error contains this text")] = None,
    node: Annotated[str | None, typer.Option(help="Only runs of the node with this ID")] = None,
    trigger: Annotated[
        str | None, typer.Option(help="Only runs started by this: schedule, manual, backfill, retry or chain")
    ] = None,
    late: Annotated[
        bool | None, typer.Option("--late/--not-late", help="Only runs that started late, or only the others")
    ] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=500, help="Maximum number of runs to list")] = 20,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """List runs, newest first. Runs that are not yet due are listed only with --status PENDING."""
    with connected(server, key) as client:
        job_id = find_job(client, job).id if job is not None else None
        wanted = status.upper() if status else None
        filters = {"status": wanted, "since": since, "until": until, "q": q, "node": node, "trigger": trigger}
        found = list(islice(client.iter_runs(job_id=job_id, late=late, limit=limit, **filters), limit))
    if as_json:
        print_json(found)
        return
    chosen = any(value is not None for value in (job, late, *filters.values()))
    runs_table(found, empty="No runs match." if chosen else "No runs yet.")


def runs_table(runs: Iterable[RunView], *, empty: str) -> None:
    table(
        ("run", "job", "scheduled", "status", "late", "took", "outcome"),
        (
            (
                run.id,
                run.key or "",
                when(run.scheduled_for),
                run.status,
                ago(run.lateness_ms) if run.lateness_ms is not None else "",
                ago(run.duration_ms) if run.duration_ms is not None else "",
                outcome_text(run),
            )
            for run in runs
        ),
        empty=empty,
        wide=("job",),
        whole="outcome",
    )


@group.command("show")
def show(
    run: Run,
    curl: Annotated[bool, typer.Option("--curl", help="Print only the command that sends its request again")] = False,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Show a run with all its attempts, and the last request and response. Secrets are masked."""
    with connected(server, key) as client:
        found = client.get_run(run)
        names = {} if curl or as_json else _names(client, found)
    if curl:
        say(curl_text(found))
        return
    if as_json:
        print_json(found)
        return
    facts(
        [
            ("run", found.id),
            ("job", f"{found.job_id}{f' ({found.key})' if found.key else ''}"),
            ("kind", found.kind),
            ("trigger", trigger_text(found)),
            ("status", found.status),
            ("scheduled", f"{found.scheduled_for} ({when(found.scheduled_for)})"),
            ("until", found.until),
            ("slots", found.slots),
            ("claimed", found.claimed_at),
            ("started", found.started_at),
            ("finished", found.finished_at),
            ("late", ago(found.lateness_ms) if found.lateness_ms is not None else None),
            ("took", ago(found.duration_ms) if found.duration_ms is not None else None),
            ("node", f"{names[found.node]} ({found.node})" if found.node in names else found.node),
            ("tries", found.tries),
            ("losses", found.losses or None),
            ("waiting for", found.waiting_for or found.waiting),
            ("waiting since", found.waiting_since),
            ("next attempt", found.next_attempt_at),
            ("progress", progress_text(found)),
            ("outcome", outcome_text(found)),
            ("reason", found.reason if found.error else None),  # without an error, the outcome says it
            ("request", request_text(found)),
            ("response", response_text(found)),
            ("result", result_text(found)),
            ("followers", ", ".join(found.followers or ()) or None),
        ]
    )
    for attempt in found.attempts:
        claimed = f" (claimed {attempt.claimed_at})" if attempt.claimed_at else ""
        told = f"attempt {attempt.attempt}: {attempt.outcome} {attempt.finished_at}{claimed} {attempt.error or ''}"
        detail(told.rstrip())
    for late in found.refused or ():
        node = names.get(late.node, late.node)
        detail(f"late result of attempt {late.attempt} refused {late.refused_at}: {node} reported {late.outcome}")


def _names(client: Client, run: RunView) -> dict[str, str]:
    """Of its node. A server of the release before does not tell."""
    from onthedot.errors import NotFound

    try:
        ids = dict.fromkeys([run.node, *(late.node for late in run.refused or ())])
        return client.node_names([each for each in ids if each])
    except NotFound:
        return {}


@group.command("logs")
def logs(
    run: Run,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Print new output until the run finishes")] = False,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Print the output of a run: at most the last 64 KB."""
    with connected(server, key) as client:
        if as_json:
            print_json({"run": run, "log": client.run_logs(run)})
        elif follow:
            _follow(client, run, lambda text: sys.stdout.write(plain(text)), pause)
        else:
            sys.stdout.write(plain(client.run_logs(run)))


def _follow(client: Client, run: str, write: Callable[[str], object], rest: Callable[[], None]) -> None:
    from onthedot.model.log_text import added

    seen = ""
    while True:
        over = client.get_run(run).status in OVER  # checked first, so that the log read after it is complete
        text = client.run_logs(run)
        write(added(seen, text))
        sys.stdout.flush()
        seen = text
        if over:
            return
        rest()


def pause(seconds: float = LOOK_AGAIN) -> None:
    import asyncio

    from onthedot.clock import SystemClock

    asyncio.run(SystemClock().sleep(seconds))


@group.command("compare")
def compare(
    run: Run,
    other: Annotated[
        str | None,
        typer.Argument(metavar="[OTHER]", help="ID of the other run [default: the last one before it that succeeded]"),
    ] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Show what differs between two runs: results, the job's version, params, and what was sent and answered."""
    with connected(server, key) as client:
        found = client.compare_runs(run, other)
    if as_json:
        print_json(found)
        return
    table(
        ("field", found.run.id, found.other.id),
        ((each.field, value_text(each.this), value_text(each.other)) for each in found.differences),
        empty=f"Runs {found.run.id} and {found.other.id} do not differ but in their times.",
        wide=(found.run.id, found.other.id),
    )


@group.command("bundle")
def bundle(run: Run, output: Output = None, as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """Collect all that is known of a run in one JSON file to hand on. Secrets are masked."""
    with connected(server, key) as client:
        found = client.run_bundle(run)
    write_bundle(found, output, as_json=as_json)


@group.command("cancel")
def cancel(run: Run, as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """Cancel a run: immediately if it is pending, through its node if it is executing."""
    with connected(server, key) as client:
        done = client.cancel_run(run)
    if as_json:
        print_json(done)
    elif done.status == "CANCELLED":
        say(f"Run {done.id} is cancelled.")
    else:
        say(f"Run {done.id} is {done.status}; its node was asked to stop it.")


@group.command("retry")
def retry(
    run: Run,
    params: Annotated[
        str | None, typer.Option(metavar="JSON", help="Parameters of the new run, instead of those of the finished one")
    ] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Retry a finished run as a new run of the same slot."""
    from onthedot.cli.values import object_value

    own = None if params is None else object_value("--params", params)
    with connected(server, key) as client:
        new = client.retry_run(run, params=own)
    print_json(new) if as_json else say(f"Created run {new.id}. Follow its log with `onthedot runs logs -f {new.id}`.")
