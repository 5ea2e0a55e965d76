"""`onthedot scripts`: upload, list, show and delete scripts that jobs run in a sandbox."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from onthedot.cli.group import command_group
from onthedot.cli.options import ApiKey, AsJson, Server, connected
from onthedot.cli.output import facts, print_json, say, table, when

__all__ = ["group"]

group = command_group("Upload and manage scripts that jobs run in a sandbox.")

ScriptId = Annotated[str, typer.Argument(metavar="ID", help="ID of the script, sha256:…")]


@group.command("put")
def put(
    file: Annotated[str, typer.Argument(metavar="FILE", help="File to upload; - for standard input")],
    name: Annotated[str | None, typer.Option(help="Name of the script [default: name of the file]")] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Upload a script. Jobs use it with `onthedot jobs add --script-id ID`."""
    try:
        code = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} can't be read: {error}") from None
    with connected(server, key) as client:
        stored = client.upload_script(code, name=name or (None if file == "-" else Path(file).name))
    print_json(stored) if as_json else say(stored.id)


@group.command("list")
def list_(
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=500, help="Maximum number of scripts to list")] = 50,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """List uploaded scripts."""
    with connected(server, key) as client:
        page = client.list_scripts(limit=limit)
    if as_json:
        print_json(page.items)
        return
    table(
        ("id", "name", "size", "uploaded"),
        ((script.id, script.name or "", script.size, when(script.created_at)) for script in page.items),
        empty="No scripts. Upload one with `onthedot scripts put FILE`.",
        wide=("id", "name"),
    )
    if page.next is not None:
        say("… more scripts not shown. Use --limit 500.")


@group.command("show")
def show(script: ScriptId, as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """Show an uploaded script: the jobs that use it, and its code."""
    with connected(server, key) as client:
        found = client.get_script(script)
    if as_json:
        print_json(found)
        return
    used_by = ", ".join(found.jobs) or "no job"
    facts([("id", found.id), ("name", found.name), ("size", found.size), ("used by", used_by)])
    say("")
    say(found.code)


@group.command("delete")
def delete(script: ScriptId, as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """Delete an uploaded script that no job uses."""
    with connected(server, key) as client:
        client.delete_script(script)
    print_json({"deleted": script}) if as_json else say(f"Script {script} is deleted.")
