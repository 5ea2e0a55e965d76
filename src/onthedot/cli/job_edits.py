"""`onthedot jobs edit`: edit a job in an editor, or field by field."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onthedot.cli.describe import target_text
from onthedot.cli.job_flags import add
from onthedot.cli.options import (
    ApiKey,
    AsJson,
    OnFailure,
    OnFinish,
    OnSuccess,
    Server,
    connected,
    find_job,
)
from onthedot.cli.output import print_json, say, when
from onthedot.cli.target_flags import TargetCommand, choosers, target_given, target_of
from onthedot.cli.values import parsed_value

if TYPE_CHECKING:
    from onthedot.model.job import JobSpec, JobView

__all__ = ["EditCommand", "edit", "patch_of", "spec_of"]

HEAD = "# Job {name}. Save and quit to apply your changes; quit without changes to cancel.\n"


class EditCommand(TargetCommand):
    after = "tz"

    def _reserved(self) -> frozenset[str]:
        """Those of `jobs add`, too: both commands call a field of a target the same. Only the URL of a webhook is
        --target-url here: --url is the server's, as in all commands but `jobs add`."""
        params, *_ = typer.main.get_params_convertors_ctx_param_name_from_function(add)
        return super()._reserved().union(*(param.opts for param in params))


def edit(
    ctx: typer.Context,
    job: Annotated[str, typer.Argument(metavar="JOB", help="ID or key of the job")],
    cron: Annotated[
        str | None, typer.Option(help='Cron expression with 5 or 6 fields, such as "0 4 * * *" or @daily')
    ] = None,
    every: Annotated[str | None, typer.Option(help="Fixed interval, such as 90s, 5m or 1h30m")] = None,
    at: Annotated[
        str | None, typer.Option(help="Run once at this time: 2026-12-24T18:00:00Z, or local time with --tz")
    ] = None,
    in_: Annotated[str | None, typer.Option("--in", help="Run once after this delay, such as 10s")] = None,
    tz: Annotated[str | None, typer.Option(help="IANA time zone, such as Europe/Berlin")] = None,
    on_success: OnSuccess = None,
    on_failure: OnFailure = None,
    on_finish: OnFinish = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="PATH=VALUE", help="Set a field, such as schedule.cron='0 4 * * *'; repeatable"),
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="PATH", help="Reset a field to its default; repeatable")
    ] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Edit a job: schedule, target and chains with options, any field with --set and --unset, or all in $EDITOR."""
    times = {"cron": cron, "every": every, "at": at, "in": in_, "tz": tz}
    schedule = [f"schedule.{name}={json.dumps(value)}" for name, value in times.items() if value is not None]
    chains = {"on_success": on_success, "on_failure": on_failure, "on_finish": on_finish}
    named = [f"{name}={json.dumps(keys)}" for name, keys in chains.items() if keys]
    flags = target_given(ctx)
    with connected(server, key) as client:
        found = find_job(client, job)
        if set_ or unset or schedule or named or flags:
            patch = patch_of([*schedule, *named, *(set_ or [])], unset or [])
            if flags:
                patch["target"] = _target(ctx, found, patch.get("target", {}))
            changed = client.patch_job(found.id, patch, if_match=found.version)
        else:
            spec = _in_editor(found)
            changed = found if spec is None else client.replace_job(found.id, spec, if_match=found.version)
    if as_json:
        print_json(changed)
    elif changed.version == found.version:
        say("No changes.")
    else:
        say(
            f"Job {changed.key or changed.id} is at version {changed.version}; "
            f"next run {when(changed.next_run) or 'none'}."
            + (f" Its target is {target_text(changed.target)}." if changed.target != found.target else "")
        )


def _target(ctx: typer.Context, job: JobView, sets: Any) -> dict[str, Any]:
    """What the flags of a target change, as a JSON merge patch. `sets`: what --set and --unset change of it."""
    from onthedot.model.decoding import to_builtins

    before = to_builtins(job.target)
    after = target_of(ctx, before["type"])
    if after["type"] != before["type"]:
        before = {}
    both = [name for name in after if isinstance(sets, dict) and name != "type" and name in sets]
    if not isinstance(sets, dict) or both:
        raise typer.BadParameter(f"--set and --unset change target{'.' if both else ''}{''.join(both[:1])}, too")
    chosen = choosers(after["type"])
    other = [name for name in chosen if before.get(name) is not None and name not in after]
    unchosen = dict.fromkeys(other) if any(name in after for name in chosen) else {}
    body = {"body": _replacing(before.get("body"), after["body"])} if "body" in after else {}
    return sets | unchosen | after | body


def _replacing(before: Any, after: Any) -> Any:
    """A merge patch that leaves nothing of `before`."""
    if not isinstance(after, dict):
        return after
    if None in after.values():
        raise typer.BadParameter("--body can't set a field to null: edit the job in $EDITOR")
    before = before if isinstance(before, dict) else {}
    gone = dict.fromkeys(name for name in before if name not in after)
    return gone | {name: _replacing(before.get(name), value) for name, value in after.items()}


def patch_of(sets: list[str], unsets: list[str]) -> dict[str, Any]:
    """`policy.timeout=10s` → {"policy": {"timeout": "10s"}}: a JSON merge patch."""
    patch: dict[str, Any] = {}
    for item in sets:
        path, equals, value = item.partition("=")
        if not equals or not path:
            raise typer.BadParameter(f"{item!r} is not PATH=VALUE")
        _put(patch, path, parsed_value(value))
    for path in unsets:
        _put(patch, path, None)
    return patch


def _put(patch: dict[str, Any], path: str, value: Any) -> None:
    *folders, name = path.split(".")
    for folder in folders:
        patch = patch.setdefault(folder, {})
        if not isinstance(patch, dict):
            raise typer.BadParameter(f"{path!r} conflicts with another --set that sets a parent field")
    patch[name] = value


def spec_of(job: JobView) -> dict[str, Any]:
    """The job as a user would write it: without server-side fields and default values."""
    from onthedot.model.decoding import to_builtins
    from onthedot.model.policy import Policy

    view = to_builtins(job)
    spec = {name: view[name] for name in ("key", "name", "schedule", "target") if view[name] is not None}
    policy = _beyond(view["policy"], to_builtins(Policy()))
    optional = {"policy": policy, "params": job.params, "tags": job.tags, "paused": job.paused, "owner": job.owner}
    optional |= {"keep_result": job.keep_result, "requires": job.requires}
    optional |= {"on_success": job.on_success, "on_failure": job.on_failure, "on_finish": job.on_finish}
    optional |= {"alerts": view.get("alerts"), "objective": view.get("objective")}
    return spec | {name: value for name, value in optional.items() if value}


def _beyond(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    kept = {}
    for name, value in values.items():
        default = defaults.get(name)
        if isinstance(value, dict) and isinstance(default, dict):
            value = _beyond(value, default) or default
        if value != default:
            kept[name] = value
    return kept


def _in_editor(job: JobView) -> JobSpec | None:
    """The edited spec; None if unchanged. On an error, shows it and opens the editor again."""
    import yaml

    from onthedot.cli.failures import explain
    from onthedot.errors import OnTheDotError
    from onthedot.jobsfile import parse_jobs

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise typer.BadParameter("no editor found: set EDITOR, or use --set PATH=VALUE")
    before = HEAD.format(name=job.key or job.id) + yaml.safe_dump(spec_of(job), sort_keys=False, allow_unicode=True)
    with tempfile.TemporaryDirectory(prefix="onthedot-") as folder:
        path = Path(folder) / f"{job.key or job.id}.yaml"
        path.write_text(before, encoding="utf-8")
        while True:
            subprocess.run([*shlex.split(editor), str(path)], check=True)  # noqa: S603  # the user's own editor
            after = path.read_text(encoding="utf-8")
            if after == before:
                return None
            try:
                (spec,) = parse_jobs(after, "yaml", path, single=True).specs
                return spec
            except OnTheDotError as error:
                say(explain(error), to=sys.stderr)
                if not sys.stdin.isatty():
                    raise
                typer.confirm("Edit again?", default=True, abort=True)
