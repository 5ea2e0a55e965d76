"""Write docs/job.md, the reference of a job: every field with its type, default, meaning and an example.

`python scripts/job_reference.py` writes it anew after a change of the model; a test compares the page with the code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onthedot.api.openapi.schemas import Schemas
from onthedot.model.field_note import FieldNote
from onthedot.model.field_reference import reference
from onthedot.model.job import JobSpec

PAGE = Path(__file__).resolve().parent.parent / "docs" / "job.md"

HEAD = """\
# Reference of a job

<!-- Written by scripts/job_reference.py from the model. Change the notes in src/onthedot/model/ instead. -->

Every field of a job, for the API, jobs files, the command line and the client. The same descriptions are in
`/openapi.json`. Unknown fields are refused.

```json
{
  "key": "nightly-report",
  "schedule": {"cron": "0 3 * * *", "tz": "Europe/Berlin"},
  "target": {"type": "webhook", "url": "https://example.com/hook", "body": {"full": true}},
  "policy": {"timeout": "30s", "retry": {"attempts": 5, "backoff": "2s"}, "overlap": "skip"},
  "tags": ["reports"],
  "owner": "team-billing"
}
```

Durations are written as `90` (seconds), `"200ms"`, `"1.5s"`, `"5m"`, `"1h30m"`, `"2d"` or `"PT90S"`. Times are RFC
3339, such as `2026-03-01T09:00:00Z`; without an offset they are local times in the zone of the schedule.

A job that is read back also has `id`, `version` (its ETag), `state` (`active`, `paused`, `ended`, `quarantined`) with
`reason`, `next_run`, `last_run`, `created_at`, `updated_at`, `pause` and `stats`.
"""

TITLES = {
    "JobSpec": ("Job", ""),
    "Schedule": ("Schedule", "`schedule` has exactly one of `cron`, `every`, `at` and `in`."),
    "Policy": ("Policy", "`policy` may be left out, and so may each of its fields."),
    "Retry": ("Retry", "`policy.retry`. See [Webhooks](webhooks.md#retries) for what is retried."),
    "Concurrency": ("Concurrency", "`policy.concurrency`. See [Concurrency limits](concurrency.md)."),
    "JobAlerts": ("Alerts", "`alerts`. See [Alerts](alerts.md)."),
    "Objective": ("Objective", "`objective`. See [Lateness objective](alerts.md#lateness-objective)."),
    "WebhookTarget": ("Target: webhook", "One HTTP request. See [Webhooks](webhooks.md)."),
    "FunctionTarget": ("Target: function", "A Python function. See [Python functions](functions.md)."),
    "CommandTarget": ("Target: command", "A program that the operator registered. See [Commands](commands.md)."),
    "ScriptTarget": ("Target: script", "A script in a sandbox. See [Scripts](scripts.md)."),
    "QueueTarget": ("Target: queue", "A message to a broker. See [Queues](queues.md)."),
    "ContainerTarget": ("Target: container", "A container of Docker or Podman. See [Containers](containers.md)."),
    "KubernetesTarget": ("Target: kubernetes", "A Job of a cluster. See [Kubernetes](kubernetes.md)."),
    "LambdaTarget": ("Target: lambda", "A function of AWS Lambda. See [AWS Lambda](lambda.md)."),
    "WorkflowTarget": ("Target: workflow", "A workflow that is followed to its end. See [Workflows](workflows.md)."),
    "CheckinTarget": ("Target: checkin", "A job that runs elsewhere and reports. See [Check-ins](checkins.md)."),
}


def page() -> str:
    schemas = Schemas()
    schemas.of(JobSpec)
    parts = [HEAD]
    for struct, notes in reference().items():
        title, about = TITLES[struct]
        parts.append(f"## {title}\n" + (f"\n{about}\n" if about else ""))
        parts.append(_table(schemas, schemas.components[struct], notes))
    return "\n".join(parts)


def _table(schemas: Schemas, component: dict[str, Any], notes: Mapping[str, FieldNote]) -> str:
    rows = ["| Field | Type | Default | Meaning | Example |", "|---|---|---|---|---|"]
    for name, note in notes.items():
        schema = component["properties"][name]
        needed = name in component["required"]
        default = "**required**" if needed else _code(schema["default"]) if "default" in schema else _unset(schema)
        example = "" if note.example is None else f"`{_fragment(note.example)}`"
        cells = [f"`{name}`", _type(schemas, schema), default, note.meaning, example]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _fragment(example: dict[str, Any]) -> str:
    return json.dumps(example, ensure_ascii=False)[1:-1]


def _code(value: Any) -> str:
    if isinstance(value, dict) and value:
        return "see below"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _unset(schema: dict[str, Any]) -> str:
    for one in schema.get("anyOf", []):
        if "default" in one:
            return _code(one["default"])
    return "–"


def _type(schemas: Schemas, schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return "object"
    if "anyOf" in schema:
        kinds = [_type(schemas, one) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "oneOf" in schema:
        return "duration"
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schemas, schema['items'])}s"
    kind = {"string": "text", "boolean": "true or false", "integer": "whole number"}.get(kind, kind)
    bounds = [f"{word} {schema[key]:,}" for key, word in (("minimum", "≥"), ("maximum", "≤")) if key in schema]
    return f"{kind} {' '.join(bounds)}".strip()


if __name__ == "__main__":
    PAGE.write_text(page())
