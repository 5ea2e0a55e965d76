"""`onthedot jobs apply` and `export`: keep jobs in a file under version control."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onthedot.cli.job_edits import spec_of
from onthedot.cli.options import ApiKey, AsJson, Server, connected, server_url
from onthedot.cli.output import print_json, say

if TYPE_CHECKING:
    from onthedot.client import Client, SyncReport
    from onthedot.jobsfile import JobsFile
    from onthedot.model.job import JobView

__all__ = ["apply", "export"]


def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Jobs file: .json, .yaml or .toml")],
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete jobs of this source that are no longer in the file")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change without changing it")] = False,
    source: Annotated[
        str | None, typer.Option(help="Source name for the file's jobs [default: the file's `source`, else its name]")
    ] = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take over jobs with these keys that belong to another source or to none")
    ] = False,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Sync the jobs on the server with a file. Applying the same file twice, or an invalid file, changes nothing."""
    from onthedot.errors import Conflict, Invalid
    from onthedot.jobsfile import read_jobs_file
    from onthedot.launcher.remarks import adopt_command, remarks_on
    from onthedot.settings import load_settings

    jobs = read_jobs_file(file, load_settings().supported_extensions, source=source)
    with connected(server, key) as client:
        try:
            report = _sync(client, jobs, prune=prune, dry_run=dry_run, adopt=adopt)
        except Invalid as invalid:
            if jobs.commands and any(problem.path.endswith("target.command") for problem in invalid.problems):
                typer.echo(f"{_not_sent(file, jobs)}.", err=True)
            raise jobs.located(invalid) from None
        except Conflict as conflict:
            if not conflict.problems:
                raise
            own = adopt_command(jobs, file, server_url(server))
            ways = f"Rename the key in the file, delete the other job, or take it over with `{own}`"
            raise Conflict(f"{conflict}. {ways}") from None
    if jobs.commands:
        typer.echo(f"{_not_sent(file, jobs)}; jobs run the commands that the nodes have under these names.", err=True)
    if as_json:
        print_json(report)
        return
    would = "would be " if dry_run else ""
    for word in ("created", "updated", "removed", "adopted"):
        for name in getattr(report, word):
            say(f"{would}{word}: {name}")
    changed = len(report.created) + len(report.updated) + len(report.removed)
    say(f"{changed} of {changed + len(report.unchanged)} jobs {'would change' if dry_run else 'changed'}.")
    if report.kept and prune:
        for remark in remarks_on(jobs, report, file, server_url(server), pruned=True):
            typer.echo(f"{remark}.", err=True)
    elif report.kept and jobs.named:
        say(f"No longer in the file: {', '.join(report.kept)}. Use --prune to delete them.")
    elif report.kept:
        say(
            f"Of the source {jobs.source}, but not in this file: {', '.join(report.kept)}. If another file of this "
            "name has them, set a `source` of its own in each file. If none has them, --prune deletes them (--prune "
            "--dry-run shows which)."
        )


def _not_sent(file: Path, jobs: JobsFile) -> str:
    """Only the operator of a node registers commands: whoever may create jobs must not be able to."""
    count = len(jobs.commands)
    return (
        f"{file} defines {count} command{'s' if count != 1 else ''}, which the API never takes: a node registers them "
        f"when it is started with `onthedot serve --jobs {file}`, or from [commands] in its settings"
    )


def _sync(client: Client, jobs: JobsFile, *, prune: bool, dry_run: bool, adopt: bool) -> SyncReport:
    """Sync in one request and one transaction, with a progress bar on a terminal."""
    more: dict[str, Any] = {"adopt": True} if adopt else {}
    if jobs.origin is not None:
        more["file"] = jobs.origin
    elif jobs.former is not None:
        more["former"] = jobs.former
    if not sys.stderr.isatty() or len(jobs.specs) < 100:
        return client.sync_jobs(jobs.source, jobs.specs, prune=prune, dry_run=dry_run, **more)
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(f"Syncing {len(jobs.specs)} jobs from {jobs.source}", total=None)
        return client.sync_jobs(jobs.source, jobs.specs, prune=prune, dry_run=dry_run, **more)


def export(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Output file: .json or .yaml [default: JSON on standard output]"),
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only jobs with this tag")] = None,
    prefix: Annotated[str | None, typer.Option(help="Only jobs whose key or name starts with this prefix")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON whatever the file extension")] = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Export jobs to a file that `jobs apply` can read. Masks secrets and gives a key to jobs that have none."""
    with connected(server, key) as client:
        jobs: list[dict[str, Any]] = []
        for job in client.iter_jobs(tag=tag):
            if job.state == "ended" or not _begins(job, prefix):
                continue
            written = {"key": f"job-{job.id}", **spec_of(job)}
            written["schedule"].setdefault("tz", job.schedule.tz)  # whoever reads it may have another DEFAULT_TZ
            jobs.append(written)
    document = {"jobs": jobs}
    if file is None:
        print_json(document)
        return
    from onthedot.model.decoding import encode_json

    if file.suffix in (".yaml", ".yml") and not as_json:
        import yaml

        file.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), encoding="utf-8")
    else:
        import msgspec

        file.write_bytes(msgspec.json.format(encode_json(document), indent=2) + b"\n")
    say(f"Wrote {len(jobs)} job{'s' if len(jobs) != 1 else ''} to {file}.")


def _begins(job: JobView, prefix: str | None) -> bool:
    """Here, because a search of the server (`q`) also finds what has the word in the middle."""
    if prefix is None:
        return True
    names = (job.key or f"job-{job.id}", job.name or "")
    return any(name.casefold().startswith(prefix.casefold()) for name in names)
