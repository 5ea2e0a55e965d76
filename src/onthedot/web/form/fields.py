"""Which inputs the form has, in groups. Those of targets come from their specs, also of plug-ins."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from onthedot.model.accepted import basic, members
from onthedot.model.decoding import to_builtins
from onthedot.model.policy import BY_FORMULA, Policy
from onthedot.model.schedule import SCHEDULE_KINDS
from onthedot.model.targets import TargetSpec
from onthedot.model.targets.registry import specs
from onthedot.web.form.inputs import FormInput, Widget, widget_of

__all__ = ["FIRST", "KINDS_OF_SCHEDULE", "MORE", "SCHEDULE", "all_inputs", "policy_inputs", "target_inputs"]

KINDS_OF_SCHEDULE = tuple(kind for kind in SCHEDULE_KINDS if kind != "rrule")
"""Those that are available."""


def _input(path: str, label: str, help_text: str = "", widget: Widget = "text", **more: Any) -> FormInput:
    return FormInput(name=path, path=path, label=label, help=help_text, widget=widget, **more)


FIRST = (
    _input("name", "Name", "For people. Shown in lists."),
    _input("key", "Key", "For programs, unique: letters, digits, dots, underscores and hyphens."),
)
SCHEDULE = (
    _input("schedule.cron", "Cron expression", "minute hour day month weekday; seconds may come first"),
    _input("schedule.every", "Interval", "such as 90s, 5m or 1h30m", "duration"),
    _input("schedule.at", "Date and time", "RFC 3339, or local time in the time zone: 2027-03-01T09:00"),
    _input("schedule.in", "Delay", "such as 10s, 5m or 2d, counted from saving", "duration"),
    _input("schedule.tz", "Time zone", "IANA name such as Europe/Berlin", default="UTC"),
    _input("schedule.start", "Not before", "RFC 3339, or local time"),
    _input("schedule.end", "Not after", "RFC 3339, or local time"),
    _input("schedule.count", "Maximum number of runs", widget="number"),
)
MORE = (
    _input("params", "Parameters", "A JSON object that each run gets", "json"),
    _input("tags", "Tags", "With commas between them", "words"),
    _input("owner", "Owner", "Who is responsible; by default whoever creates the job"),
    _input("requires", "Required labels", "Labels that a node must have, with commas between them", "words"),
    _input("on_success", "Run after success", "Keys of the jobs to run when a run is done", "words"),
    _input("on_failure", "Run after failure", "Keys of the jobs to run when all attempts failed", "words"),
    _input("on_finish", "Run afterwards", "Keys of the jobs to run in both cases", "words"),
    _input("alerts", "Alerts", 'A JSON object such as {"failed": true, "channels": ["ops"]}', "json"),
    _input("objective", "Lateness objective", 'A JSON object such as {"late": "1s", "percent": 99}', "json"),
    _input("keep_result", "Keep results of up to 64 KB", "By default, results of up to 4 KB are kept.", "checkbox"),
)
_POLICY_HELP = {
    "timeout": ("Timeout", "How long one attempt may take"),
    "overlap": ("If the previous run is still running", ""),
    "catch_up": ("After downtime, run", ""),
    "catch_up_limit": ("Maximum number of missed runs", "For “all”"),
    "delivery": ("Delivery", "At most once: an attempt that may have been received is never repeated"),
    "jitter": ("Jitter", "Start at a random time within this duration after the scheduled time"),
    "expires_in": ("Expires after", "Do not start a run that is later than this"),
    "completion": ("Completed by", "Callback: the receiver reports the result later"),
    "completion_timeout": ("Timeout of the callback", ""),
    "max_running": ("Maximum number of concurrent runs", "Of this job, over all nodes"),
    "retry.attempts": ("Attempts", "Including the first one"),
    "retry.backoff": ("First backoff", ""),
    "retry.factor": ("Backoff factor", ""),
    "retry.max": ("Longest backoff", ""),
    "retry.max_age": ("Stop retrying after", "Counted from the scheduled time"),
    "retry.plan": ("Retry plan", "Instead of attempts and backoff"),
    "retry.until": ("Retry until", ""),
    "concurrency.group": ("Concurrency group", "Jobs that share a limit"),
    "concurrency.limit": ("Limit of the group", "Concurrent runs of all jobs in the group"),
}
_BY_TARGET = {"timeout": "3s for webhooks"}


@lru_cache(1)
def policy_inputs() -> tuple[FormInput, ...]:
    return tuple(_of_struct(Policy, "policy"))


@lru_cache(1)
def target_inputs() -> dict[str, tuple[FormInput, ...]]:
    """By type of target."""
    return {kind: tuple(_of_target(kind, spec)) for kind, spec in specs().items()}


@lru_cache(1)
def all_inputs() -> dict[str, FormInput]:
    """By name, without the targets."""
    return {entry.name: entry for entry in (*FIRST, *SCHEDULE, *policy_inputs(), *MORE)}


def _of_struct(struct: type[msgspec.Struct], path: str) -> list[FormInput]:
    found: list[FormInput] = []
    for field in msgspec.structs.fields(struct):
        below = f"{path}.{field.encode_name}"
        inner = _struct_in(field.type)
        if inner is not None:
            found += _of_struct(inner, below)
            continue
        short = below.removeprefix("policy.")
        label, help_text = _POLICY_HELP.get(short, (_label(field.encode_name), ""))
        widget, choices = widget_of(field.type)
        default = _BY_TARGET.get(short) or _default(field.name, field)
        found.append(
            _input(below, label, help_text, widget, choices=choices, default=default, required=False),
        )
    return found


def _of_target(kind: str, spec: type[TargetSpec]) -> list[FormInput]:
    helps = {flag.field: flag for flag in spec.flags}
    secrets = _secret_fields(spec)
    found = []
    for field in msgspec.structs.fields(spec):
        flag = helps.get(field.name)
        widget, choices = widget_of(field.type)
        if flag is not None and flag.file:
            widget = "code"
        note = spec.notes.get(field.encode_name)
        help_text = (
            note.meaning.replace("`", "") if note is not None else "" if flag is None else _for_a_form(flag.help)
        )
        found.append(
            FormInput(
                name=f"target:{kind}.{field.encode_name}",
                path=f"target.{field.encode_name}",
                label=_label(field.encode_name),
                help=help_text,
                widget=widget,
                choices=choices,
                default=_default(field.name, field),
                divider=":" if flag is None else flag.divider,
                required=field.required,
                secret=field.name in secrets,
            )
        )
    return found


def _secret_fields(spec: type[TargetSpec]) -> tuple[str, ...]:
    """Asked of the class: what is secret does not depend on the values."""
    try:
        return spec.secret_fields(None)  # type: ignore[arg-type]
    except AttributeError:
        return ()


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    for member in members(kind):
        plain = basic(member)
        if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
            return plain
    return None


def _default(name: str, field: msgspec.structs.FieldInfo) -> str:
    value = BY_FORMULA.get(name, field.default)
    if value in (msgspec.NODEFAULT, msgspec.UNSET, None, False, True, ""):
        return ""
    return str(to_builtins(value))


def _label(name: str) -> str:
    words = name.replace("_", " ")
    return {"url": "URL", "env": "Environment", "cpus": "CPUs"}.get(name, words[:1].upper() + words[1:])


def _for_a_form(text: str) -> str:
    """The help of a flag, "Webhook: URL to call", as the form says it. What it shows otherwise is left out: the
    default, that a flag is repeatable, and that the code is in a file."""
    _, colon, rest = text.partition(": ")
    told = rest if colon else text
    for ending in ("; repeatable", " [default", ", true or false"):
        told = told.partition(ending)[0]
    told = told.replace("File with the code", "The code")
    return told[:1].upper() + told[1:]
