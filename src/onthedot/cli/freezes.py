"""`onthedot pause --all` and `onthedot resume --all`: the whole installation."""

from __future__ import annotations

from typing import Annotated

import typer

from onthedot.cli.options import ApiKey, AsJson, Server, connected
from onthedot.cli.output import print_json, say

__all__ = ["pause", "resume"]

All = Annotated[bool, typer.Option("--all", help="Required: this concerns all jobs of all tenants")]


def pause(
    all_: All = False,
    note: Annotated[str | None, typer.Option(help="Reason, shown on every page of the dashboard")] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Pause the whole installation. Runs that are started by hand still start."""
    _require(all_, "pause")
    with connected(server, key) as client:
        done = client.pause_all(note=note)
    print_json(done) if as_json else say(f"Everything is paused since {done['freeze']['since']}.")


def resume(all_: All = False, as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """Resume the whole installation. Slots missed during the pause are not run; jobs paused singly stay paused."""
    _require(all_, "resume")
    with connected(server, key) as client:
        done = client.resume_all()
    print_json(done) if as_json else say("Everything is resumed.")


def _require(given: bool, verb: str) -> None:
    if not given:
        raise typer.BadParameter(f"add --all; a single job: onthedot jobs {verb} JOB", param_hint="--all")
