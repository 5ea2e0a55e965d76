"""`onthedot ops`: one verb for all jobs, or dead letters, that match."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onthedot.cli.group import command_group
from onthedot.cli.options import ApiKey, AsJson, Server, connected, find_job
from onthedot.cli.output import facts, print_json, say, table, when
from onthedot.cli.values import object_value

if TYPE_CHECKING:
    from onthedot.client import Client
    from onthedot.model.bulk import BulkCount, BulkOperation

__all__ = ["confirmed", "follow", "group", "one_line"]

group = command_group("Bulk operations: one verb for all jobs, or dead letters, that match.")

LOOK_AGAIN = 0.5

Operation = Annotated[int, typer.Argument(metavar="OPERATION", min=1, help="ID of the operation")]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask for confirmation")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Show the progress until the operation has ended")]
Rate = Annotated[int | None, typer.Option(min=1, max=10_000, help="Maximum per second")]


@group.command("start")
def start(
    verb: Annotated[str, typer.Argument(help="pause, resume, run, delete, tag, backfill, redrive or discard")],
    q: Annotated[str | None, typer.Option("-q", help="Only jobs with these words in key, name, tags or target")] = None,
    tag: Annotated[str | None, typer.Option(help="Only jobs with this tag")] = None,
    status: Annotated[str | None, typer.Option(help="Only jobs in this state")] = None,
    target: Annotated[str | None, typer.Option(help="Only jobs with this target type")] = None,
    schedule: Annotated[str | None, typer.Option(help="Only jobs with this schedule type")] = None,
    owner: Annotated[str | None, typer.Option(help="Only jobs of this owner")] = None,
    next_before: Annotated[str | None, typer.Option(help="Only jobs whose next run is before this instant")] = None,
    next_after: Annotated[str | None, typer.Option(help="Only jobs whose next run is at or after this instant")] = None,
    job: Annotated[
        str | None, typer.Option(metavar="JOB", help="redrive, discard: only dead letters of this job")
    ] = None,
    cause: Annotated[str | None, typer.Option(help="redrive, discard: only dead letters with this cause")] = None,
    all_: Annotated[bool, typer.Option("--all", help="All jobs; required if there is no filter")] = False,
    note: Annotated[str | None, typer.Option(help="pause: the reason")] = None,
    until: Annotated[str | None, typer.Option(help="pause: resume automatically at this time")] = None,
    params: Annotated[str | None, typer.Option(metavar="JSON", help="run: parameters of these runs")] = None,
    add: Annotated[list[str] | None, typer.Option(metavar="TAG", help="tag: add this tag; repeatable")] = None,
    remove: Annotated[list[str] | None, typer.Option(metavar="TAG", help="tag: remove this tag; repeatable")] = None,
    from_: Annotated[str | None, typer.Option("--from", help="backfill: start of the range (RFC 3339)")] = None,
    to: Annotated[str | None, typer.Option("--to", help="backfill: end of the range (RFC 3339)")] = None,
    force: Annotated[bool, typer.Option("--force", help="backfill: include slots that have succeeded")] = False,
    rate: Rate = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what matches, change nothing")] = False,
    yes: Yes = False,
    wait: Wait = True,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Apply a verb to all jobs (redrive, discard: dead letters) that match. Shows their number and asks first."""
    chosen = {"q": q, "tag": tag, "status": status, "target": target, "schedule": schedule, "owner": owner}
    chosen |= {"next_before": next_before, "next_after": next_after, "cause": cause}
    given: dict[str, Any] = {"note": note, "until": until, "add": add, "remove": remove, "start": from_, "end": to}
    given |= {"params": object_value("--params", params) if params else None, "force": force or None}
    with connected(server, key) as client:
        wanted: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
        if job is not None:
            wanted["job_id"] = find_job(client, job).id
        if bool(wanted) == all_:
            raise typer.BadParameter("specify at least one filter, or --all")
        said = {name: value for name, value in given.items() if value is not None}
        if dry_run or not (yes or as_json):
            counted = client.count_operation(verb, filter=wanted, params=said)  # type: ignore[arg-type]
            if dry_run:
                print_json(counted) if as_json else _show_count(counted)
                return
            if not confirmed(counted):
                return
        started = client.start_operation(verb, filter=wanted, params=said, rate=rate)  # type: ignore[arg-type]
        ended = follow(client, started, quiet=as_json) if wait else started
    print_json(ended) if as_json else say(one_line(ended))
    if ended.failed or ended.state in ("stopped", "aborted"):
        raise typer.Exit(1)


def _show_count(counted: BulkCount) -> None:
    for item in counted.sample:
        say(f"{item.id}  {item.key or ''}".rstrip())
    say(f"{_number(counted.total, counted.total_exact)} would be affected by {counted.verb}.")


def confirmed(counted: BulkCount) -> bool:
    if not counted.total:
        say("Nothing matches.")
        return False
    what = "dead letters" if counted.verb in ("redrive", "discard") else "jobs"
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"can't ask for confirmation without a terminal: use -y to {counted.verb} {what}")
    return typer.confirm(f"{counted.verb} {_number(counted.total, counted.total_exact)} {what}?")


def follow(client: Client, operation: BulkOperation, *, quiet: bool) -> BulkOperation:
    """Until it has ended; on a terminal the progress is shown on one line."""
    from onthedot.cli.runs import pause

    shown = sys.stderr.isatty() and not quiet
    while not operation.has_ended:
        if shown:
            sys.stderr.write(f"\r\033[K{one_line(operation)}")
            sys.stderr.flush()
        pause(LOOK_AGAIN)
        operation = client.get_operation(operation.id)
    if shown:
        sys.stderr.write("\r\033[K")
    return operation


def one_line(operation: BulkOperation) -> str:
    parts = [f"{operation.done} done"]
    parts += [f"{operation.failed} failed"] if operation.failed else []
    parts += [f"{operation.skipped} skipped"] if operation.skipped else []
    parts += [f"waiting for {operation.waiting_for} results"] if operation.waiting_for else []
    total = _number(operation.total, operation.total_exact)
    why = f" ({operation.reason})" if operation.reason else ""
    return f"Operation {operation.id}: {operation.verb}, {operation.state}{why}: {', '.join(parts)} of {total}."


def _number(total: int, exact: bool) -> str:
    return f"{total:,}" if exact else f"{total:,}+"


@group.command("list")
def list_(
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=500, help="Maximum number to list")] = 20,
    all_: Annotated[bool, typer.Option("--all", help="List all operations")] = False,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """List bulk operations, newest first."""
    with connected(server, key) as client:
        operations = client.iter_operations(**({} if all_ else {"limit": limit}))
        found = list(operations if all_ else islice(operations, limit))
        more = not all_ and next(operations, None) is not None
    if as_json:
        print_json(found)
        return
    table(
        ("id", "verb", "state", "done", "failed", "skipped", "total", "started", "by"),
        (
            (
                each.id,
                each.verb,
                each.state,
                each.done,
                each.failed,
                each.skipped,
                _number(each.total, each.total_exact),
                when(each.created_at),
                each.actor or "",
            )
            for each in found
        ),
        empty="No operations. Start one with `onthedot ops start pause --tag TAG`.",
        wide=("by",),
    )
    if more:
        say(f"… more operations not shown. Use --limit {min(500, limit * 10)} or --all.")


@group.command("show")
def show(
    operation: Operation,
    wait: Annotated[bool, typer.Option("--wait", help="Show the progress until it has ended")] = False,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Show a bulk operation: its progress and the first errors."""
    from onthedot.model.decoding import encode_json

    with connected(server, key) as client:
        found = client.get_operation(operation)
        if wait:
            found = follow(client, found, quiet=as_json)
    if as_json:
        print_json(found)
        return
    facts(
        [
            ("id", found.id),
            ("verb", found.verb),
            ("state", found.state if found.reason is None else f"{found.state}: {found.reason}"),
            ("filter", encode_json(found.filter).decode() if found.filter is not None else None),
            ("ids", found.ids),
            ("params", encode_json(found.params).decode() if found.params else None),
            ("rate", found.rate),
            ("total", _number(found.total, found.total_exact)),
            ("done", found.done),
            ("failed", found.failed),
            ("skipped", found.skipped),
            ("waiting for", found.waiting_for or None),
            ("failed again", found.failed_again or None),
            ("by", found.actor),
            ("node", found.node),
            ("started", f"{found.created_at} ({when(found.created_at)})"),
            ("finished", found.finished_at),
        ]
    )
    for error in found.errors:
        say(f"  {error.id}: {error.error}")


@group.command("abort")
def abort(operation: Operation, as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """Abort a bulk operation after its current portion. What is done stays done."""
    with connected(server, key) as client:
        ended = client.abort_operation(operation)
    print_json(ended) if as_json else say(one_line(ended))


@group.command("pause")
def pause_(operation: Operation, as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """Pause a bulk operation after its current portion, until it is resumed or aborted."""
    with connected(server, key) as client:
        paused = client.pause_operation(operation)
    print_json(paused) if as_json else say(one_line(paused))


@group.command("resume")
def resume(operation: Operation, as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """Resume a paused bulk operation."""
    with connected(server, key) as client:
        resumed = client.resume_operation(operation)
    print_json(resumed) if as_json else say(one_line(resumed))
