"""docs/job.md names every field of a job as the code has it, and every example in it is a job."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from onthedot.model.alerts import JobAlerts
from onthedot.model.decoding import convert
from onthedot.model.field_reference import reference
from onthedot.model.job import JobSpec
from onthedot.model.objective import Objective
from onthedot.model.policy import Concurrency, Policy, Retry
from onthedot.model.schedule import Schedule
from onthedot.model.targets.registry import known_union

WRITER = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "job_reference.py"))
REFERENCE = reference()
TARGETS = {kind.__name__: kind for kind in get_args(known_union())}
STRUCTS: dict[str, Any] = {
    **{struct.__name__: struct for struct in (JobSpec, Schedule, Policy, Retry, Concurrency, JobAlerts, Objective)},
    **{name: kind for name, kind in TARGETS.items() if kind.__module__.startswith("onthedot.")},
}
LEAST: dict[str, dict[str, Any]] = {
    "WebhookTarget": {"url": "http://example.com/"},
    "ScriptTarget": {"code": "print(1)"},
    "QueueTarget": {"broker": "orders", "topic": "orders"},
    "ContainerTarget": {"image": "registry.example/report:1"},
    "KubernetesTarget": {"image": "registry.example/report:1"},
    "LambdaTarget": {"function": "report"},
    "WorkflowTarget": {"engine": "airflow", "workflow": "etl"},
}
EXCLUDES = {"template": "image", "script": "code", "plan": "attempts"}


def job_with(struct: str, example: dict[str, Any]) -> dict[str, Any]:
    """A job in which the example stands where its field belongs."""
    job: dict[str, Any] = {"schedule": {"every": "1h"}, "target": {"type": "webhook", "url": "http://example.com/"}}
    if struct == "JobSpec":
        return job | example
    if struct == "Schedule":
        return job | {"schedule": example}
    if struct == "Policy":
        return job | {"policy": example}
    if struct == "Retry":
        return job | {"policy": {"retry": example}}
    if struct == "Concurrency":
        return job | {"policy": {"concurrency": example}}
    if struct in ("JobAlerts", "Objective"):
        return job | {"alerts" if struct == "JobAlerts" else "objective": example}
    least = {name: value for name, value in LEAST.get(struct, {}).items() if name not in map(EXCLUDES.get, example)}
    return job | {"target": {"type": STRUCTS[struct].__struct_config__.tag, **least, **example}}


def test_the_page_is_that_of_the_code():
    assert WRITER["PAGE"].read_text() == WRITER["page"](), "run `python scripts/job_reference.py`"


@pytest.mark.parametrize("struct", STRUCTS)
def test_every_field_is_described(struct):
    assert list(REFERENCE.get(struct, ())) == [field.encode_name for field in msgspec.structs.fields(STRUCTS[struct])]


@pytest.mark.parametrize(
    ("struct", "field"), [(struct, field) for struct, notes in REFERENCE.items() for field in notes]
)
def test_every_example_is_a_job(struct, field):
    note = REFERENCE[struct][field]
    if note.example is None:
        assert "not available" in note.meaning
        return
    assert field in note.example
    spec = convert(job_with(struct, note.example), JobSpec)
    assert list(spec.target.problems()) == []
