"""`onthedot jobs add`: a job from flags, from a file, or from standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onthedot.cli.options import AsJson, OnFailure, OnFinish, OnlyKey, OnlyServer, OnSuccess, connected
from onthedot.cli.output import print_json, say, when
from onthedot.cli.target_flags import target_given, target_of
from onthedot.cli.values import parsed_value

if TYPE_CHECKING:
    from onthedot.model.job import JobSpec

__all__ = ["add", "loose_spec"]


def add(
    ctx: typer.Context,
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="File with one job, or a jobs file; - reads standard input")
    ] = None,
    cron: Annotated[
        str | None, typer.Option(help='Cron expression with 5 or 6 fields, such as "0 3 * * *" or @daily')
    ] = None,
    every: Annotated[str | None, typer.Option(help="Fixed interval, such as 90s, 5m or 1h30m")] = None,
    at: Annotated[
        str | None, typer.Option(help="Run once at this time: 2026-12-24T18:00:00Z, or local time with --tz")
    ] = None,
    in_: Annotated[str | None, typer.Option("--in", help="Run once after this delay, such as 10s")] = None,
    tz: Annotated[
        str | None, typer.Option(help="IANA time zone, such as Europe/Berlin [default: DEFAULT_TZ of the server]")
    ] = None,
    start: Annotated[str | None, typer.Option(help="Do not fire before this time")] = None,
    end: Annotated[str | None, typer.Option(help="Do not fire after this time")] = None,
    count: Annotated[int | None, typer.Option(help="Maximum number of runs")] = None,
    key: Annotated[str | None, typer.Option(help="Unique key of the job")] = None,
    name: Annotated[str | None, typer.Option(help="Display name")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Tag; repeatable")] = None,
    requires: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="Label that a node must have to run it; repeatable")
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(help="Parameter name=value for a function or command; repeatable")
    ] = None,
    timeout: Annotated[str | None, typer.Option(help="Stop a run after this time, such as 30s")] = None,
    attempts: Annotated[int | None, typer.Option(help="Maximum number of attempts per run [default: 3]")] = None,
    retry_plan: Annotated[
        str | None, typer.Option(help="Fixed retry times instead of --attempts: quick (2.6 min) or standard (32 h)")
    ] = None,
    retry_until: Annotated[str | None, typer.Option(help="next_slot: do not retry once the next run is due")] = None,
    overlap: Annotated[
        str | None, typer.Option(help="When a run is still executing: allow, skip, queue or replace")
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="Concurrency group; at most --group-limit runs of all its jobs run at once")
    ] = None,
    group_limit: Annotated[int | None, typer.Option(help="Maximum number of running runs of the group")] = None,
    max_running: Annotated[int | None, typer.Option(help="Maximum number of running runs of this job")] = None,
    catch_up: Annotated[
        str | None, typer.Option(help="Missed slots to run after downtime: latest, skip or all")
    ] = None,
    completion: Annotated[
        str | None, typer.Option(help="When a webhook is done: answer, or callback if its receiver calls back later")
    ] = None,
    completion_timeout: Annotated[
        str | None, typer.Option(help="Maximum time from acceptance to the callback [default: 1h]")
    ] = None,
    keep_result: Annotated[bool, typer.Option("--keep-result", help="Keep results of more than 4 KB")] = False,
    paused: Annotated[bool, typer.Option("--paused", help="Create the job paused")] = False,
    owner: Annotated[str | None, typer.Option(help="Owner of the job [default: the name of the API key]")] = None,
    alerts: Annotated[
        str | None, typer.Option(metavar="JSON", help='Alerts, such as {"failed": true, "channels": ["ops"]}')
    ] = None,
    objective: Annotated[
        str | None, typer.Option(metavar="JSON", help='Lateness objective, such as {"late": "1s", "percent": 99}')
    ] = None,
    run_now: Annotated[bool, typer.Option("--run-now", help="Also run it once immediately")] = False,
    on_success: OnSuccess = None,
    on_failure: OnFailure = None,
    on_finish: OnFinish = None,
    as_json: AsJson = False,
    server: OnlyServer = None,
    api_key: OnlyKey = None,
) -> None:
    """Add a job from options, from a file, or from standard input (-).

    Example: onthedot jobs add --cron "0 3 * * *" --tz Europe/Berlin --url https://example.com/hook --key nightly
    """
    retry = {"attempts": attempts, "plan": retry_plan, "until": retry_until}
    flags = {
        "schedule": {"cron": cron, "every": every, "at": at, "in": in_, "tz": tz, "start": start, "end": end}
        | {"count": count},
        "target": target_of(ctx),
        "policy": {"timeout": timeout, "overlap": overlap, "catch_up": catch_up, "retry": retry}
        | {"completion": completion, "completion_timeout": completion_timeout}
        | {"concurrency": {"group": group, "limit": group_limit}, "max_running": max_running},
        "key": key,
        "name": name,
        "tags": tag or None,
        "requires": requires or None,
        "params": dict(_pair(item) for item in param or []) or None,
        "paused": paused or None,
        "owner": owner,
        "alerts": _json("--alerts", alerts),
        "objective": _json("--objective", objective),
        "run_now": run_now or None,
        "keep_result": keep_result or None,
        "on_success": on_success or None,
        "on_failure": on_failure or None,
        "on_finish": on_finish or None,
    }
    if (
        file is not None
    ):  # the job has its key and its URL there: --url and --key are the server's, as in other commands
        target, own_key = flags.pop("target"), flags.pop("key")
        server, api_key = server or target.get("url"), api_key or own_key
        if loose_spec(flags) or set(target_given(ctx)) - {"--url"}:
            raise typer.BadParameter("a job comes from FILE or from options, not from both")
    specs = _from_file(file) if file is not None else [_from_flags(flags)]
    with connected(server, api_key) as client:
        jobs = {place: client.create_job(specs[place]) for place in _followers_first(specs)}
    made = [jobs[place] for place in range(len(specs))]
    if as_json:
        print_json(made[0] if len(made) == 1 else made)
        return
    for job in made:
        say(
            f"Job {job.id}{f' ({job.key})' if job.key else ''} is {job.state}; next run {when(job.next_run) or 'none'}."
        )


def _json(option: str, text: str | None) -> Any:
    import msgspec

    try:
        return None if text is None else msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise typer.BadParameter(f"{option} is not valid JSON: {error}") from None


def loose_spec(flags: dict[str, Any]) -> dict[str, Any]:
    """The same without the options that were not given."""
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
        raise typer.BadParameter("no schedule: specify --cron, --every, --at or --in, or a FILE")
    if "target" not in spec:
        raise typer.BadParameter("no target: specify what to run, such as --url, --function or --command, or a FILE")
    return convert(spec, JobSpec)


def _from_file(name: str) -> list[JobSpec]:
    from onthedot.jobsfile import parse_jobs, read_jobs_file
    from onthedot.settings import load_settings

    if name == "-":
        text = sys.stdin.read()
        return parse_jobs(text, "json" if text.lstrip()[:1] in ("{", "[") else "yaml", "stdin", single=True).specs
    return read_jobs_file(Path(name), load_settings().supported_extensions, single=True).specs


def _followers_first(specs: list[JobSpec]) -> list[int]:
    """The places of the jobs, so that each comes after those that it names to follow it."""
    if not any(spec.chained for spec in specs):
        return list(range(len(specs)))
    from onthedot.model.chains import edges_of
    from onthedot.plan.chains import lengths

    names = [spec.key or f"#{place}" for place, spec in enumerate(specs)]
    chains = lengths({name: [key for _, _, key in edges_of(spec)] for name, spec in zip(names, specs, strict=True)})
    return sorted(range(len(specs)), key=lambda place: chains[names[place]])


def _pair(item: str) -> tuple[str, Any]:
    name, equals, value = item.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"{item!r} is not name=value")
    return name, parsed_value(value)
