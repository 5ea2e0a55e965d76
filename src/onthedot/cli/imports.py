"""`onthedot import`: jobs of other schedulers as a jobs file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onthedot.cli.group import command_group
from onthedot.cli.output import print_json, say

if TYPE_CHECKING:
    from onthedot.importers.findings import ImportedJobs

__all__ = ["group"]

group = command_group("Convert the jobs of another scheduler into a jobs file. Needs no server.")

File = Annotated[str, typer.Argument(metavar="FILE", help="File to read; - for standard input")]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Jobs file to write: .yaml or .json [default: print YAML]"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print jobs and what was not carried over as JSON")]
Broker = Annotated[str, typer.Option(metavar="NAME", help="Name of the broker in the settings: [brokers.NAME]")]


@group.command("crontab")
def crontab(
    file: File,
    output: Output = None,
    system: Annotated[
        bool, typer.Option("--system", help="The lines have a user before the command, as in /etc/crontab")
    ] = False,
    tz: Annotated[
        str | None, typer.Option("--tz", help="Time zone of lines before a CRON_TZ [default: that of this machine]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Convert a crontab into jobs, and its commands into commands of the jobs file."""
    from onthedot.importers.crontab import import_crontab
    from onthedot.importers.local_zone import local_zone

    found = _found("crontab", file)
    import_crontab(_text(file), found, tz=_zone(tz) or local_zone(), system=system)
    _finish(found, output, as_json)


@group.command("apscheduler")
def apscheduler(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Python file, module:scheduler, .json of export_jobs, or sqlite:///PATH"),
    ],
    output: Output = None,
    table: Annotated[str, typer.Option(metavar="NAME", help="Table of the job store")] = "apscheduler_jobs",
    as_json: AsJson = False,
) -> None:
    """Convert jobs of APScheduler 3 into jobs. Runs the code of FILE, without starting its scheduler."""
    from onthedot.importers.apscheduler import import_apscheduler

    found = _found("apscheduler", file)
    import_apscheduler(file, found, table=table)
    _finish(found, output, as_json)


@group.command("celery-beat")
def celery_beat(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Python file, module:app, or .json of dumpdata django_celery_beat")
    ],
    output: Output = None,
    broker: Broker = "celery",
    as_json: AsJson = False,
) -> None:
    """Convert periodic tasks of Celery into jobs that send the same tasks to its workers. Runs the code of FILE."""
    from onthedot.importers.celery_beat import import_celery_beat

    found = _found("celery-beat", file)
    import_celery_beat(file, found, broker=broker)
    _finish(found, output, as_json)


@group.command("cronjob")
def cronjob(
    file: File,
    output: Output = None,
    tz: Annotated[
        str, typer.Option("--tz", help="Time zone of CronJobs without `timeZone`: that of the control plane")
    ] = "UTC",
    as_json: AsJson = False,
) -> None:
    """Convert CronJobs of Kubernetes (YAML or JSON, also a List of kubectl) into jobs."""
    from onthedot.importers.cronjob import import_cronjobs

    found = _found("cronjob", file)
    import_cronjobs(_text(file), found, tz=_zone(tz) or "UTC")
    _finish(found, output, as_json)


@group.command("eventbridge")
def eventbridge(file: File, output: Output = None, broker: Broker = "sqs", as_json: AsJson = False) -> None:
    """Convert schedules and scheduled rules of Amazon EventBridge, as JSON of the AWS CLI, into jobs."""
    from onthedot.importers.eventbridge import import_eventbridge

    found = _found("eventbridge", file)
    import_eventbridge(_text(file), found, broker=broker)
    _finish(found, output, as_json)


def _found(kind: str, origin: str) -> ImportedJobs:
    from onthedot.importers.findings import ImportedJobs

    return ImportedJobs(kind, "standard input" if origin == "-" else origin)


def _text(file: str) -> str:
    from onthedot.errors import Unreadable

    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"{file}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise Unreadable(f"{file}: can't be read: {error.strerror}") from None


def _zone(tz: str | None) -> str | None:
    from onthedot.timing.zones import close_names, is_zone

    if tz is not None and not is_zone(tz):
        close = close_names(tz)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise typer.BadParameter(f"unknown time zone {tz!r}{hint}", param_hint="--tz")
    return tz


def _finish(found: ImportedJobs, output: Path | None, as_json: bool) -> None:
    """Write the file, then say on standard error what is not in it."""
    from onthedot.importers.jobs_text import as_json as json_text
    from onthedot.importers.jobs_text import as_yaml, told

    if output is not None and output.suffix not in (".yaml", ".yml", ".json"):
        raise typer.BadParameter(f"{output}: accepted are .yaml, .yml and .json", param_hint="--output")
    if output is not None:
        text = json_text(found) if output.suffix == ".json" else as_yaml(found)
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            from onthedot.errors import Unreadable

            raise Unreadable(f"{output}: can't be written: {error.strerror}") from None
    if as_json:
        report = {
            "file": None if output is None else str(output),
            "jobs": found.jobs,
            "commands": found.commands,
            "needs": found.needs,
            "not_carried_over": found.not_carried_over,
        }
        print_json(report)
    elif output is None:
        say(as_yaml(found))
    for need in found.needs:
        say(f"Needs: {need}", to=sys.stderr)
    for lost in found.not_carried_over:
        say(told(lost), to=sys.stderr)
    if output is not None and not as_json:
        said = f"Wrote {_number(len(found.jobs), 'job')} to {output}; {_number(len(found.not_carried_over), 'remark')}."
        say(said, to=sys.stderr)


def _number(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
