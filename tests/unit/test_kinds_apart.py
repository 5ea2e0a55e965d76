"""Which kinds of target there are is known in two folders only: a new kind changes no other file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from onthedot.model.targets.registry import BUILT_IN, built_in_specs

ROOT = Path(__file__).resolve().parents[2] / "src" / "onthedot"
HOMES = ("model/targets/", "targets/")
MODULES = {
    *(f"onthedot.model.targets.{each.spec.partition(':')[0]}" for each in BUILT_IN.values()),
    *(f"onthedot.targets.{each.kind.partition('.')[0]}" for each in BUILT_IN.values()),
}
CLASSES = {spec.__name__ for spec in built_in_specs().values()}
MAY = {
    "service/timers.py": "a timer makes a webhook",
    "jobsfile/short_form.py": "the short form of a jobs file makes a function",
    "embed/scheduler.py": "`add` makes a function out of a callable, and a webhook out of a URL",
    "importers/apscheduler.py": "a job of APScheduler becomes a function",
    "importers/celery_beat.py": "a task becomes a message for the queue of its workers",
    "importers/crontab.py": "a line of a crontab becomes a command",
    "importers/cronjob.py": "a CronJob becomes a Job of Kubernetes",
    "importers/eventbridge_target.py": "services of AWS become targets",
    "api/routes/jobs.py": "an example for the documentation of the API",
    "api/routes/sync.py": "an example for the documentation of the API",
    "settings/kubernetes.py": "`kubernetes` is also the name of its table in the settings",
    "model/policy.py": "`queue` is also a way to deal with overlap",
    "web/definition.py": "`queue` is also a way to deal with overlap",
    "brokers/sqs.py": "`queue` is what SQS calls its topics",
    "service/scripts.py": "what is uploaded there is for one kind",
    "service/jobs.py": "a change may name an uploaded script",
    "model/field_reference.py": "an example for the reference of a job",
    "telemetry/metrics.py": "`kubernetes` is also a label of a metric",
    "telemetry/otlp/exporter.py": "a variable is called `queue`, which is no kind there",
    "channels/command.py": "`command` is also a way to deliver an alert",
    "channels/webhook.py": "`webhook` is also a way to deliver an alert",
    "api/fastpath/creates.py": "an attribute is called `function`, which is no kind there",
}


def mentions(source: str) -> Iterator[str]:
    """Where a kind is named: as a string of its own, by the class of its targets, or by a module of its own."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str(word)) if word in BUILT_IN:
                yield f"{node.lineno}: {word!r}"
            case ast.ImportFrom(module=str(word)) if word in MODULES or any(
                word.startswith(f"{one}.") for one in MODULES
            ):
                yield f"{node.lineno}: {word}"
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.alias(name=word) if word in CLASSES:
                yield f"{node.lineno}: {word}"


def test_no_other_file_asks_which_kind_it_is() -> None:
    named = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(HOMES) and (found := list(mentions(path.read_text()))):
            named[name] = found
    assert {name: found for name, found in named.items() if name not in MAY} == {}
    assert MAY.keys() - named.keys() == set(), "these need no exception any more"


def test_templates_and_statements_do_not_ask_either() -> None:
    files = [path for path in ROOT.rglob("*") if path.suffix in (".html", ".js", ".sql")]
    assert len(files) > 20, "they were found"
    quoted = [f"{quote}{word}{quote}" for word in BUILT_IN for quote in "\"'"]
    assert [path.name for path in files for word in quoted if word in path.read_text()] == []


@pytest.mark.parametrize(
    "line",
    [
        'target.type == "webhook"',
        'kinds["command"]',
        "isinstance(target, FunctionTarget)",
        "isinstance(target, targets.CommandTarget)",
        "from onthedot.model.targets import WebhookTarget",
        "from onthedot.targets.webhook.certificates import findings",
        "from onthedot.model.targets.script import script_named_in",
    ],
)
def test_one_that_asks_is_found(line: str) -> None:
    assert len(list(mentions(line))) == 1
