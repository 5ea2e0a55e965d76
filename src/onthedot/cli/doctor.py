"""`onthedot doctor`: check the installation for problems and suggest fixes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from onthedot.cli.options import ApiKey, AsJson, Server, Settings, StoreUrl
from onthedot.cli.output import print_json, say

if TYPE_CHECKING:
    from onthedot.cli.findings import Finding

__all__ = ["doctor"]

_MARKS = {"ok": ("✓", typer.colors.GREEN), "warning": ("!", typer.colors.YELLOW), "wrong": ("✗", typer.colors.RED)}


def doctor(
    as_json: AsJson = False,
    store: StoreUrl = None,
    settings: Settings = None,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Check settings, store, clocks, nodes, backlog and disk for problems, and suggest fixes. With `--url` or
    `ONTHEDOT_URL`, that server is checked too, and not reaching it is an error.

    Exits with code 1 if it finds an error.
    """
    from onthedot.cli.diagnosis import examine

    findings = asyncio.run(examine(store, settings, server, key))
    if as_json:
        print_json(findings)
    else:
        for finding in findings:
            _tell(finding)
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)


def _tell(finding: Finding) -> None:
    mark, colour = _MARKS[finding.state]
    typer.secho(mark, fg=colour, nl=False)
    say(f" {finding.subject:<9} {finding.found}")
    if finding.advice is not None:
        say(f"            → {finding.advice}")
