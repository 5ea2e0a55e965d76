"""`onthedot jobs add`: a job from flags, from a file, or from standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onthedot.cli.options import AsJson, OnlyKey, OnlyServer, connected
from onthedot.cli.output import print_json, say, when

if TYPE_CHECKING:
    from onthedot.model.job import JobSpec

__all__ = ["add", "loose_spec", "object_value", "parsed_value"]

WHEN, WHAT, HOW = "When (exactly one)", "What (exactly one)", "How"


def add(
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="A job or a jobs file; - is standard input")
    ] = None,
    cron: Annotated[str | None, typer.Option(help='"0 3 * * *", 5 or 6 fields, or @daily')] = None,
    every: Annotated[str | None, typer.Option(help="90s, 5m, 1h30m")] = None,
    at: Annotated[str | None, typer.Option(help="2026-12-24T18:00:00Z, or local time with --tz")] = None,
    in_: Annotated[str | None, typer.Option("--in", help="10s from now, once")] = None,
    tz: Annotated[str | None, typer.Option(help="Time zone, such as Europe/Berlin [default: UTC]")] = None,
    start: Annotated[str | None, typer.Option(help="Not before this time")] = None,
    end: Annotated[str | None, typer.Option(help="Not after this time")] = None,
    count: Annotated[int | None, typer.Option(help="So many times at most")] = None,
    url: Annotated[str | None, typer.Option(help="Webhook: the address that is called")] = None,
    function: Annotated[str | None, typer.Option(help="Python function, package.module:name")] = None,
    command: Annotated[str | None, typer.Option(help="Name of a registered command")] = None,
    method: Annotated[str | None, typer.Option(help="Webhook: GET, POST, PUT … [default: POST]")] = None,
    header: Annotated[list[str] | None, typer.Option("-H", "--header", help="Webhook: 'Name: value'")] = None,
    body: Annotated[str | None, typer.Option(help="Webhook: JSON, or text")] = None,
    secret: Annotated[str | None, typer.Option(help="Webhook: signing secret, whsec_…")] = None,
    key: Annotated[str | None, typer.Option(help="The job's own key: unique, stable")] = None,
    name: Annotated[str | None, typer.Option(help="A name for people")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="May be given several times")] = None,
    param: Annotated[list[str] | None, typer.Option(help="name=value for a function or command")] = None,
    timeout: Annotated[str | None, typer.Option(help="A run is stopped after this")] = None,
    attempts: Annotated[int | None, typer.Option(help="How often a failing run is tried [default: 3]")] = None,
    overlap: Annotated[str | None, typer.Option(help="allow, skip, queue or replace")] = None,
    catch_up: Annotated[str | None, typer.Option(help="latest, skip or all")] = None,
    paused: Annotated[bool, typer.Option("--paused", help="Add it, but don't start it yet")] = False,
    owner: Annotated[str | None, typer.Option(help="Whose job it is [default: the name of the key]")] = None,
    run_now: Annotated[bool, typer.Option("--run-now", help="Run it once at once, then by its schedule")] = False,
    as_json: AsJson = False,
    server: OnlyServer = None,
    api_key: OnlyKey = None,
) -> None:
    """Add a job: by flags, from a file, or from standard input (-).

    onthedot jobs add --cron "0 3 * * *" --tz Europe/Berlin --url https://example.com/hook --key nightly
    """
    flags = {
        "schedule": {"cron": cron, "every": every, "at": at, "in": in_, "tz": tz, "start": start, "end": end}
        | {"count": count},
        "target": _target(url, function, command, method, header, body, secret),
        "policy": {"timeout": timeout, "overlap": overlap, "catch_up": catch_up, "retry": {"attempts": attempts}},
        "key": key,
        "name": name,
        "tags": tag or None,
        "params": dict(_pair(item) for item in param or []) or None,
        "paused": paused or None,
        "owner": owner,
        "run_now": run_now or None,
    }
    specs = _from_file(file) if file is not None else [_from_flags(flags)]
    with connected(server, api_key) as client:
        made = [client.create_job(spec) for spec in specs]
    if as_json:
        print_json(made[0] if len(made) == 1 else made)
        return
    for job in made:
        say(
            f"Job {job.id}{f' ({job.key})' if job.key else ''} is {job.state}; next run {when(job.next_run) or 'none'}."
        )


def loose_spec(flags: dict[str, Any]) -> dict[str, Any]:
    """The same without what was not given."""
    kept: dict[str, Any] = {}
    for name, value in flags.items():
        inner = loose_spec(value) if isinstance(value, dict) and name != "params" else value
        if inner is not None and inner != {}:
            kept[name] = inner
    return kept


def _from_flags(flags: dict[str, Any]) -> JobSpec:
    from onthedot.model.decoding import convert
    from onthedot.model.job import JobSpec

    spec = loose_spec(flags)
    if "schedule" not in spec:
        raise typer.BadParameter("say when: --cron, --every, --at or --in (or give a FILE)")
    return convert(spec, JobSpec)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise typer.BadParameter(f"{text!r} is no header. Accepted: 'Name: value'", param_hint="--header")
    return name.strip(), value.strip()


def _target(
    url: str | None,
    function: str | None,
    command: str | None,
    method: str | None,
    header: list[str] | None,
    body: str | None,
    secret: str | None,
) -> dict[str, Any]:
    chosen = [name for name, value in (("--url", url), ("--function", function), ("--command", command)) if value]
    if len(chosen) > 1:
        raise typer.BadParameter(f"{' and '.join(chosen)} can't go together: a job has one target")
    if function:
        return {"type": "function", "function": function}
    if command:
        return {"type": "command", "command": command}
    if not url:
        return {}
    headers = dict(_header(item) for item in header or [])
    return {
        "type": "webhook",
        "url": url,
        "method": method.upper() if method else None,
        "headers": headers or None,
        "body": parsed_value(body) if body is not None else None,
        "secret": secret,
    }


def _from_file(name: str) -> list[JobSpec]:
    from onthedot.jobsfile import parse_jobs, read_jobs_file
    from onthedot.settings import load_settings

    if name == "-":
        text = sys.stdin.read()
        return parse_jobs(text, "json" if text.lstrip()[:1] in ("{", "[") else "yaml", "stdin", single=True).specs
    return read_jobs_file(Path(name), load_settings().supported_extensions, single=True).specs


def _pair(item: str) -> tuple[str, Any]:
    name, equals, value = item.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{item!r} is not name=value")
    return name, parsed_value(value)


def object_value(flag: str, text: str) -> dict[str, Any]:
    value = parsed_value(text)
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{flag} takes a JSON object such as '{{\"day\": 1}}', not {text[:100]!r}")
    return value


def parsed_value(text: str) -> Any:
    """JSON if it is JSON, else the text itself: `retries=3` is a number, `colour=red` needs no quotes."""
    import msgspec

    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
