"""`onthedot jobs`: list and manage jobs."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from onthedot.cli.describe import (
    concurrency_text,
    follow_facts,
    meaning,
    ping_text,
    retry_text,
    schedule_text,
    target_text,
)
from onthedot.cli.group import command_group
from onthedot.cli.job_edits import EditCommand, edit
from onthedot.cli.job_flags import add
from onthedot.cli.job_history import restore, undelete, versions
from onthedot.cli.job_slots import backfill, calendar, chain, explain, skip, unskip, upcoming
from onthedot.cli.jobs_files import apply, export
from onthedot.cli.options import ApiKey, AsJson, Job, Server, connected, find_job
from onthedot.cli.output import ago, facts, print_json, say, table, when
from onthedot.cli.target_flags import TargetCommand
from onthedot.cli.values import object_value
from onthedot.model.targets.registry import BUILT_IN

if TYPE_CHECKING:
    from onthedot.model.job import JobView

__all__ = ["group", "show_job"]

group = command_group("List and manage jobs.")
group.command("add", cls=TargetCommand)(add)
group.command("edit", cls=EditCommand)(edit)
group.command("explain")(explain)
group.command("calendar")(calendar)
group.command("chain")(chain)
group.command("backfill")(backfill)
group.command("upcoming")(upcoming)
group.command("skip")(skip)
group.command("unskip")(unskip)
group.command("versions")(versions)
group.command("restore")(restore)
group.command("undelete")(undelete)
group.command("apply")(apply)
group.command("export")(export)


@group.command("list")
def list_(
    q: Annotated[
        str | None, typer.Argument(metavar="[WORDS]", help="Only jobs with these words in key, name, tags or target")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only jobs with this tag")] = None,
    status: Annotated[
        str | None, typer.Option(help="Only jobs in this state: active, paused, ended or quarantined")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help=f"Only jobs with this target type: {', '.join(BUILT_IN)}, or one of a plug-in")
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help="Only jobs with this schedule type: cron, every, at or in")
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Only jobs of this owner")] = None,
    last_status: Annotated[
        str | None,
        typer.Option(help="Only jobs whose last run ended with this status: DONE, FAILED, CANCELLED or SKIPPED"),
    ] = None,
    failing: Annotated[
        bool | None,
        typer.Option("--failing/--not-failing", help="Only jobs whose last finished run failed, or did not"),
    ] = None,
    late: Annotated[
        bool | None,
        typer.Option(
            "--late/--not-late",
            help="Only jobs whose last run started more than 1 s late or whose next run is overdue, or the others",
        ),
    ] = None,
    never_ran: Annotated[
        bool | None, typer.Option("--never-ran/--ran", help="Only jobs without a finished run, or with one")
    ] = None,
    ended: Annotated[
        bool | None, typer.Option("--ended/--not-ended", help="Only jobs that have ended, or have not")
    ] = None,
    sort: Annotated[
        str | None, typer.Option(help="Order: name, next or last (run); -name, -next or -last reverses")
    ] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=500, help="Maximum number of jobs to list")] = 50,
    all_: Annotated[bool, typer.Option("--all", help="List all jobs")] = False,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """List jobs with their next and last run."""
    filters = {
        "q": q,
        "tag": tag,
        "status": status,
        "target": target,
        "schedule": schedule,
        "owner": owner,
        "last_status": last_status.upper() if last_status else None,
        "failing": failing,
        "late": late,
        "never_ran": never_ran,
        "ended": ended,
        "sort": sort,
    }
    with connected(server, key) as client:
        jobs = client.iter_jobs(**filters, **({} if all_ else {"limit": limit}))
        found = list(jobs if all_ else islice(jobs, limit))  # a page may be short and not the last
        more = not all_ and next(jobs, None) is not None
    if as_json:
        print_json(found)
        return
    table(
        ("id", "job", "schedule", "target", "state", "next", "last"),
        (
            (
                job.id,
                job.key or job.name or "",
                schedule_text(job.schedule),
                target_text(job.target),
                job.state,
                when(job.next_run),
                job.stats.last_status or "",
            )
            for job in found
        ),
        empty="No jobs match."
        if any(value is not None for name, value in filters.items() if name != "sort")
        else "No jobs. Create one with `onthedot jobs add --every 1m --url http://…`.",
        wide=("job", "schedule", "target"),
    )
    if more:
        say(f"… more jobs not shown. Use --limit {min(500, limit * 10)} or --all, or search with WORDS.")


@group.command("show")
def show(job: Job, as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """Show a job with its statistics."""
    with connected(server, key) as client:
        found = find_job(client, job)
    if as_json:
        print_json(found)
    else:
        show_job(found)


def show_job(job: JobView) -> None:
    from onthedot.model.decoding import encode_json

    stats, policy = job.stats, job.policy
    facts(
        [
            ("id", job.id),
            ("key", job.key),
            ("name", job.name),
            ("state", _state(job)),
            ("owner", job.owner),
            ("schedule", schedule_text(job.schedule)),
            ("meaning", meaning(job)),
            ("start", job.schedule.start),
            ("end", job.schedule.end),
            ("count", job.schedule.count),
            ("target", target_text(job.target)),
            ("ping URL", job.ping_url or None),
            ("last ping", ping_text(job.last_ping or None)),
            ("params", encode_json(job.params).decode() if job.params else None),
            ("tags", ", ".join(job.tags)),
            ("requires", ", ".join(job.requires)),
            ("timeout", policy.timeout),
            ("retry", retry_text(policy.retry)),
            ("overlap", policy.overlap),
            ("group", concurrency_text(policy)),
            ("max running", policy.max_running or None),
            ("catch-up", policy.catch_up),
            ("delivery", policy.delivery.replace("_", " ")),
            *follow_facts(job),
            ("next run", f"{job.next_run} ({when(job.next_run)})" if job.next_run else "none"),
            ("last run", f"{job.last_run} ({when(job.last_run)}) {stats.last_status or ''}" if job.last_run else None),
            ("runs", f"{stats.runs}, {stats.failures} failed" if stats.runs else None),
            (
                "duration",
                f"{ago(round(stats.avg_duration_ms))} on average" if stats.avg_duration_ms is not None else None,
            ),
            ("version", job.version),
            ("created", job.created_at),
            ("updated", job.updated_at),
        ]
    )


def _state(job: JobView) -> str:
    if job.pause is None:
        return job.state if job.reason is None else f"{job.state}: {job.reason}"
    until = f" until {job.pause.until}" if job.pause.until else ""
    return f"{job.state} since {job.pause.since}{until}{f': {job.pause.note}' if job.pause.note else ''}"


@group.command("pause")
def pause(
    job: Job,
    note: Annotated[str | None, typer.Option(help="Reason for the pause")] = None,
    until: Annotated[
        str | None, typer.Option(help="Resume automatically at this time, such as 2026-12-24T18:00:00Z")
    ] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Pause a job. Manual runs still start."""
    with connected(server, key) as client:
        done = client.pause_job(find_job(client, job).id, note=note, until=until)
    ends = f" until {done.pause.until}" if done.pause is not None and done.pause.until else ""
    print_json(done) if as_json else say(f"Job {done.key or done.id} is {done.state}{ends}.")


@group.command("resume")
def resume(job: Job, as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """Resume a paused job. Slots missed during the pause are not run."""
    with connected(server, key) as client:
        done = client.resume_job(find_job(client, job).id)
    if as_json:
        print_json(done)
    else:
        say(f"Job {done.key or done.id} is {done.state}; next run {when(done.next_run) or 'none'}.")


@group.command("run")
def run(
    job: Job,
    params: Annotated[
        str | None, typer.Option(help="Parameters for this run only, merged over the job's: '{\"day\": 1}'")
    ] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Run a job now, in addition to its schedule."""
    own = None if params is None else object_value("--params", params)
    with connected(server, key) as client:
        started = client.run_job(find_job(client, job).id, params=own)
    if as_json:
        print_json(started)
    else:
        say(f"Created run {started.id}. Follow its log with `onthedot runs logs -f {started.id}`.")


@group.command("delete")
def delete(
    job: Job,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask for confirmation")] = False,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Delete a job. Its run history is kept; `onthedot jobs undelete` brings it back within 10 minutes."""
    import sys

    with connected(server, key) as client:
        found = find_job(client, job)
        name = found.key or found.name or str(found.id)
        if not yes:
            if not sys.stdin.isatty():
                raise typer.BadParameter(f"can't ask for confirmation without a terminal: use -y to delete job {name}")
            typer.confirm(f"Delete job {name} ({schedule_text(found.schedule)})?", abort=True)
        client.delete_job(found.id)
    if as_json:
        print_json({"deleted": found.id, "key": found.key})
    else:
        say(f"Job {name} is deleted. To undo this within 10 minutes: `onthedot jobs undelete {found.id}`.")
