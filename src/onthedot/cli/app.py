"""All commands. Their modules import nothing heavy at the top, so that --help stays fast."""

from __future__ import annotations

from typing import Annotated

import typer

from onthedot.cli import (
    alerts,
    audit,
    backups,
    cluster,
    dead,
    doctor,
    echo,
    freezes,
    imports,
    jobs,
    jobs_files,
    keys,
    migrate,
    migrate_store,
    nodes,
    ops,
    plan,
    preview,
    runs,
    scripts,
    serve,
    timer,
    upcoming,
    witness,
)
from onthedot.cli.options import set_authority

__all__ = ["app"]

app = typer.Typer(
    help="On the Dot: a job scheduler that fires on the dot.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from onthedot.version import __version__

        typer.echo(f"onthedot {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit")
    ] = False,
    ca: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="PEM file of the authority that signed the server's certificate [env: ONTHEDOT_CA]"
        ),
    ] = None,
) -> None:
    """On the Dot: a job scheduler that fires on the dot."""
    set_authority(ca)


app.command("serve")(serve.serve)
app.add_typer(jobs.group, name="jobs")
jobs.group.command("apply")(jobs_files.apply)
jobs.group.command("export")(jobs_files.export)
app.add_typer(runs.group, name="runs")
app.add_typer(dead.group, name="dead")
app.add_typer(ops.group, name="ops")
app.add_typer(scripts.group, name="scripts")
app.add_typer(alerts.group, name="alerts")
app.command("timer")(timer.timer)
app.command("preview")(preview.preview)
app.command("plan")(plan.plan)
app.add_typer(nodes.group, name="nodes")
app.command("destinations")(cluster.destinations)
app.command("groups")(cluster.groups)
app.command("stats")(cluster.stats)
app.command("pause")(freezes.pause)
app.command("resume")(freezes.resume)
app.command("proof")(cluster.proof)
app.command("upcoming")(upcoming.upcoming)
app.command("forecast")(upcoming.forecast)
app.command("audit")(audit.audit)
app.command("migrate")(migrate.migrate)
app.command("migrate-store")(migrate_store.migrate_store)
app.command("backup")(backups.backup)
app.command("restore")(backups.restore)
app.command("doctor")(doctor.doctor)
app.command("witness")(witness.witness)
app.add_typer(keys.group, name="keys")
app.add_typer(imports.group, name="import")
app.command("echo")(echo.echo)
