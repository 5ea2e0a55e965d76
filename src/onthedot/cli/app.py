"""All commands. Their modules import nothing heavy at the top, so that --help stays fast."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from onthedot.cli.options import set_authority

__all__ = ["COMMANDS", "command_line"]

COMMANDS = {
    "serve": "serve:serve",
    "jobs": "jobs:group",
    "runs": "runs:group",
    "dead": "dead:group",
    "ops": "ops:group",
    "scripts": "scripts:group",
    "alerts": "alerts:group",
    "timer": "timer:timer",
    "preview": "preview:preview",
    "plan": "plan:plan",
    "nodes": "nodes:group",
    "destinations": "cluster:destinations",
    "groups": "cluster:groups",
    "stats": "cluster:stats",
    "pause": "freezes:pause",
    "resume": "freezes:resume",
    "proof": "cluster:proof",
    "upcoming": "upcoming:upcoming",
    "forecast": "upcoming:forecast",
    "audit": "audit:audit",
    "migrate": "migrate:migrate",
    "migrate-store": "migrate_store:migrate_store",
    "backup": "backups:backup",
    "restore": "backups:restore",
    "doctor": "doctor:doctor",
    "witness": "witness:witness",
    "keys": "keys:group",
    "import": "imports:group",
    "echo": "echo:echo",
}
"""Where each command is, or its group of commands; in the order of --help."""


def command_line(arguments: Sequence[str] = ()) -> typer.Typer:
    """With the one command that the arguments name; if they begin otherwise, with all. To load and describe all of them
    takes a quarter of a second."""
    app = typer.Typer(
        help="On the Dot: a job scheduler that fires on the dot.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    for name in arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS:
        module, _, attribute = COMMANDS[name].partition(":")
        found = getattr(import_module(f"onthedot.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from onthedot.version import __version__

        typer.echo(f"onthedot {__version__}")
        raise typer.Exit


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
