"""`onthedot jobs apply` and `export`: jobs as a file under version control."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onthedot.cli.job_edits import spec_of
from onthedot.cli.options import ApiKey, AsJson, Server, connected
from onthedot.cli.output import print_json, say

if TYPE_CHECKING:
    from onthedot.client import Client, SyncReport
    from onthedot.jobsfile import JobsFile

__all__ = ["apply", "export"]


def apply(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=".json, .yaml or .toml")],
    prune: Annotated[bool, typer.Option("--prune", help="Remove jobs of this file that are no longer in it")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change")] = False,
    source: Annotated[
        str | None, typer.Option(help="Name to keep the jobs under [default: the file's `source`, else its name]")
    ] = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take over jobs of these keys that another file keeps, or nobody")
    ] = False,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Make the server's jobs what a file says. The same file again changes nothing; a bad file changes nothing."""
    from onthedot.errors import Invalid
    from onthedot.jobsfile import read_jobs_file
    from onthedot.launcher.remarks import remarks_on
    from onthedot.settings import load_settings

    jobs = read_jobs_file(file, load_settings().supported_extensions, source=source)
    if jobs.commands:
        raise typer.BadParameter(f"{file} defines commands: only `onthedot serve --jobs {file}` can register those")
    with connected(server, key) as client:
        try:
            report = _sync(client, jobs, prune=prune, dry_run=dry_run, adopt=adopt)
        except Invalid as invalid:
            raise jobs.located(invalid) from None
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
        for remark in remarks_on(jobs, report, file):
            typer.echo(f"{remark}.", err=True)
    elif report.kept:
        say(f"No longer in the file: {', '.join(report.kept)}. --prune removes what is not in it.")


def _sync(client: Client, jobs: JobsFile, *, prune: bool, dry_run: bool, adopt: bool) -> SyncReport:
    """One request, one transaction: all or nothing. A terminal sees that something goes on meanwhile."""
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
        progress.add_task(f"{len(jobs.specs)} jobs of {jobs.source}", total=None)
        return client.sync_jobs(jobs.source, jobs.specs, prune=prune, dry_run=dry_run, **more)


def export(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help=".json or .yaml [default: JSON on the terminal]")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only jobs with this tag")] = None,
    q: Annotated[str | None, typer.Option("--prefix", help="Only jobs whose key or name begins so")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON, whatever the file is called")] = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Write the jobs as a file that `jobs apply` reads. Secrets are masked; a job without a key gets one."""
    with connected(server, key) as client:
        jobs: list[dict[str, Any]] = []
        for job in client.iter_jobs(tag=tag, q=q):
            if job.state == "ended":
                continue
            jobs.append({"key": f"job-{job.id}", **spec_of(job)})
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
    say(f"{len(jobs)} jobs written to {file}.")
