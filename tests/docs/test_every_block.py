"""Every code block of the README, SECURITY.md and docs/ is checked against the product: its commands, requests, jobs,
settings, imports and files. Nothing is started; what a page shows at work is run by other tests.

A block that can't be checked like this is named in UNCHECKED, with the reason and the test that does it instead.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Container, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import kubernetes_validate
import msgspec
import pytest
import yaml

from onthedot.channels.message import AlertMessage
from onthedot.errors import OnTheDotError
from onthedot.importers.crontab import import_crontab
from onthedot.importers.eventbridge import import_eventbridge
from onthedot.importers.findings import ImportedJobs
from onthedot.jobsfile import parse_jobs
from onthedot.model.chains import ChainTrigger
from onthedot.model.decoding import convert, decode_json
from onthedot.model.job import JobSpec
from onthedot.model.result import settled
from onthedot.service.problems import Problem
from onthedot.settings import load_settings
from onthedot.targets import Outcome
from onthedot.telemetry.metrics import Metrics
from onthedot.witness.metrics import WitnessMetrics
from tests.docs.blocks import ROOT, Block, Command, blocks_of, commands_of, pages, shell_text
from tests.docs.commands import (
    COMPOSE,
    OLD_JOB,
    PROGRAMS,
    REFUSED,
    SETTINGS,
    SHOWN,
    THEIRS,
    Checker,
    Wrong,
    check_helm_values,
    check_job,
    check_message,
    check_variable,
    offline,
    require,
)

SHOWN_BLOCKS = "tests/docs/test_shown_blocks.py"
UNCHECKED = {
    ("docs/adr/0001-use-integer-milliseconds-and-key-runs-by-id.md", "cli"): "the layers on the day of the decision",
    (
        "docs/architecture.md",
        "cli                                   commands; most of them use the HTTP client",
    ): f"a drawing; {SHOWN_BLOCKS} compares it with the contracts of imports",
    (
        "docs/architecture.md",
        "claims, begin, finish, beats",
    ): f"a drawing; {SHOWN_BLOCKS} looks for its classes",
    (
        "docs/concurrency.md",
        "GROUP  LIMIT  RUNNING  WAITING  WAITING SINCE",
    ): f"what a command prints; {SHOWN_BLOCKS} has it printed",
    (
        "docs/intake.md",
        "✓ intake    orders: jobs on Redis at 127.0.0.1:6379 works; refused messages go to jobs.refused",
    ): "what a command prints; tests/cluster/test_intake.py compares it",
    (
        "docs/jobs-file.md",
        "Error: validation failed.",
    ): "what a command prints; tests/cluster/test_manual.py compares it",
    (
        "docs/operations.md",
        "# nginx",
    ): "configuration of another program; tests/deploy/test_nginx_block.py runs it",
    (
        "docs/operations.md",
        "CREATE ROLE scheduler LOGIN PASSWORD '…';",
    ): f"SQL for PostgreSQL itself; {SHOWN_BLOCKS} runs it",
    ("docs/plugins.md", 'onthedot jobs add --key diary --every 10s --file diary --line "good morning"'): (
        "options of the example plug-in, which is not installed here; tests/cluster/test_plugin.py installs it"
    ),
    (
        "docs/queues.md",
        "✓ broker    orders: NATS at nats.internal:4222 is reachable, login accepted",
    ): "what a command prints; tests/cluster/test_queue.py compares it",
    (
        "docs/scale.md",
        "$ python -m bench.capacity",
    ): f"written by bench/document.py; {SHOWN_BLOCKS} has it computed",
    (
        "docs/state_machine.md",
        "stateDiagram-v2",
    ): f"two drawings; {SHOWN_BLOCKS} reads them, and compares their states",
}
"""Each of these is read, compared or run by the test that is named; only the one of a decision is history."""
PLAIN = {"docs/plugins.md": {"settings"}, "docs/results.md": {"callback"}}
"""Names that a page says in words where they come from."""
MEANT = {
    "docs/plugins.md": "import msgspec\nfrom typing import Any\n"
    "from onthedot.targets import Call, Kind, Outcome, Profile, TargetSpec, from_coroutine\n"
}
"""Imports that a page says in words."""
NO_METRICS = {"onthedot_notes"}

Check = Callable[[Block, Checker], None]


def typed_in(block: Block) -> list[Command]:
    if block.language != "crontab":
        return commands_of(shell_text(block))
    lines = [line.split(" ", 5) for line in block.text.splitlines() if "curl" in line]
    return [command for fields in lines for command in commands_of(fields[5])]


def shell(block: Block, checker: Checker) -> None:
    typed = typed_in(block)
    assert typed, "no command in it"
    for command in typed:
        if command.stdin is not None and command.out is not None:
            (checker.directory / command.out).write_text(command.stdin)
            by_extension = {".toml": toml, ".yaml": yaml_, ".py": python}[Path(command.out).suffix]
            by_extension(block._replace(text=command.stdin), checker)
    for command in typed:
        try:
            checker.check(command)
        except (Exception, SystemExit) as wrong:
            raise Wrong(f"{' '.join(command.words)}: {told(wrong)}") from wrong


def toml(block: Block, checker: Checker) -> None:
    loose = tomllib.loads(block.text)
    if "jobs" in loose:
        jobs(block.text, "toml")
    elif "project" in loose:
        package = tomllib.loads((ROOT / "examples" / "plugin" / "pyproject.toml").read_text())
        assert loose["project"].items() <= package["project"].items(), "not what examples/plugin has"
    else:
        settings_file(block.text, checker)


def settings_file(text: str, checker: Checker) -> None:
    """With the channels that the page has shown before, which rules of alerts name."""
    loose = tomllib.loads(text)
    checker.tables |= loose
    known = {"channels": checker.tables.get("channels")} if "channels" not in loose else {}
    (checker.directory / "checked.toml").write_text(text)
    load_settings(known, environ={}, file=checker.directory / "checked.toml")


def jobs(text: str, extension: str) -> None:
    for spec in parse_jobs(text, extension, "jobs." + extension, single=True).specs:
        check_job(spec)


def yaml_(block: Block, checker: Checker) -> None:
    every = [each for each in yaml.safe_load_all(block.text) if each is not None]
    assert every, "nothing in it"
    for found in every:
        if "apiVersion" in found:
            kubernetes_validate.validate({"metadata": {"name": "x"}} | found, "1.29", strict=True)
        elif "jobs" in found:
            jobs(block.text, "yaml")
        elif "scrape_configs" in found:
            for name in found["rule_files"]:
                assert (ROOT / "deploy" / "prometheus" / name).exists(), f"there is no deploy/prometheus/{name}"
        elif "services" in found:
            for name, service in found["services"].items():
                require(name in COMPOSE, f"compose.yaml has no service {name}")
                for variable, value in service["environment"].items():
                    check_variable(variable, value)
        else:
            check_helm_values(found)
            if text := found.get("settingsFile"):
                settings_file(text, checker)


def json_(block: Block, checker: Checker) -> None:
    for text in one_by_one(block.text):
        loose = msgspec.json.decode(text)
        if isinstance(loose, list) or "jobs" in loose or {"schedule", "target"} <= set(loose):
            jobs(text, "json")
        elif "op" in loose or str(loose.get("type", "")).startswith("onthedot.job."):
            check_message(text)
        elif "ScheduleExpression" in loose:
            found = ImportedJobs("eventbridge", "schedules.json")
            import_eventbridge(text, found)
            assert found.jobs, found.not_carried_over
        elif "incidents" in loose:
            exactly(loose, AlertMessage)
        elif "condition" in loose:  # printed by the witness: a part of the same
            require(set(loose) <= {*fields_of(AlertMessage)}, f"no fields {set(loose) - {*fields_of(AlertMessage)}}")
        elif set(loose) == {"trigger"}:
            exactly(loose["trigger"], ChainTrigger)
        elif "problem" in loose:
            exactly(loose["problem"], Problem)
        elif set(loose) == {"kind", "result_note"}:
            size = int(re.findall(r"\d+", loose["result_note"])[0])
            outcome = settled(Outcome(kind=loose["kind"], detail={"result": "x" * (size - 2)}), keep=False)
            require(outcome.detail == {"result_note": loose["result_note"]}, f"it is {outcome.detail}")
        elif loose.get("type") == "onthedot.run.due":
            known = {"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "data"}
            require(set(loose) == known, f"fields {set(loose) ^ known}")
        else:  # a part of a job
            check_job(convert(OLD_JOB | loose, JobSpec))


def fields_of(kind: Any) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(kind)]


def exactly(loose: dict[str, Any], kind: type) -> None:
    """The struct, and nothing that it does not have."""
    require(set(loose) <= {*fields_of(kind)}, f"{kind.__name__} has no {set(loose) - {*fields_of(kind)}}")
    decode_json(json.dumps(loose), kind)


def one_by_one(text: str) -> Iterator[str]:
    """The values of a block: one, or one on each line."""
    decoder, at = json.JSONDecoder(), 0
    text = text.strip()
    while at < len(text):
        _, end = decoder.raw_decode(text, at)
        yield text[at:end]
        at = end + (len(text[end:]) - len(text[end:].lstrip()))


def python(block: Block, checker: Checker) -> None:
    """It compiles, what it imports from us exists, what it names is there, and calls of ours fit their signatures."""
    tree = ast.parse(MEANT.get(block.page, "") + block.text)
    compile(tree, block.place, "exec")
    known: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "onthedot":
            module = __import__(node.module or "", fromlist=["*"])
            for alias in node.names:
                assert hasattr(module, alias.name), f"{node.module} has no {alias.name}"
                known[alias.asname or alias.name] = getattr(module, alias.name)
        elif isinstance(node, ast.Import):
            known |= {alias.name: __import__(alias.name) for alias in node.names if alias.name == "onthedot"}
    kinds = dict(made(tree, known))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            fits(node, known, kinds)
    checker.names |= {*bindings(tree)}
    bound = {*dir(builtins), *PLAIN.get(block.page, ()), *checker.names, "__name__"}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    require(used <= bound, f"names that come from nowhere: {used - bound}")


def bindings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]


def made(tree: ast.AST, known: dict[str, Any]) -> Iterator[tuple[str, type]]:
    """Names of objects of our classes."""
    for node in ast.walk(tree):
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.With | ast.AsyncWith):
            pairs = [(item.optional_vars, item.context_expr) for item in node.items]
        for target, value in pairs:
            if isinstance(target, ast.Name) and isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
                kind = known.get(value.func.id)
                if isinstance(kind, type):
                    yield target.id, kind


def fits(call: ast.Call, known: dict[str, Any], kinds: dict[str, type]) -> None:
    function: Any
    selves = 0
    if isinstance(call.func, ast.Name):
        function = known.get(call.func.id)
    elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        name, attribute = call.func.value.id, call.func.attr
        owner: Any = kinds.get(name) or (known.get(name) if isinstance(known.get(name), ModuleType) else None)
        if owner is None:
            return
        assert hasattr(owner, attribute), f"{name} has no {attribute}"
        function, selves = getattr(owner, attribute), int(isinstance(owner, type))
    else:
        return
    if function is None or any(isinstance(arg, ast.Starred) for arg in call.args) or isinstance(function, property):
        return
    keywords = {word.arg: None for word in call.keywords if word.arg is not None}
    try:
        inspect.signature(function).bind(*[None] * (len(call.args) + selves), **keywords)
    except TypeError as wrong:
        raise Wrong(f"{ast.unparse(call)}: {wrong}") from None


def crontab(block: Block, checker: Checker) -> None:
    found = ImportedJobs("crontab", "crontab.txt")
    import_crontab(block.text, found, tz="UTC", system=False)
    lost = [each for each in found.not_carried_over if each.item != "all commands" and "MAILTO" not in each.what]
    require(found.jobs and not lost, f"not carried over: {lost}")
    for command in typed_in(block):
        checker.check(command)


def unit(block: Block, checker: Checker) -> None:
    lines = (ROOT / "deploy" / "systemd" / "onthedot.service").read_text().splitlines()
    assert [line for line in block.text.splitlines() if line.strip() and line.strip() not in lines] == []


def query(block: Block, checker: Checker) -> None:
    assert "onthedot_" in block.text  # metrics are looked up in every block


CHECKS: dict[str, Check] = {
    "console": shell,
    "crontab": crontab,
    "ini": unit,
    "json": json_,
    "promql": query,
    "python": python,
    "sh": shell,
    "toml": toml,
    "yaml": yaml_,
}
PAGES = {page: found for page in pages() if (found := blocks_of(page))}


def metrics() -> set[str]:
    text = Metrics().text().decode() + WitnessMetrics().text().decode()
    return set(re.findall(r"^# HELP (\S+)", text, re.MULTILINE))


METRICS = metrics()


def names_exist(block: Block) -> None:
    settings = {name.removesuffix("_") for name in re.findall(r"\bONTHEDOT_([A-Z_]+)", block.text)}
    assert settings <= SETTINGS, f"there are no settings {sorted(settings - SETTINGS)}"
    named = {name.removesuffix(end) for name in re.findall(r"\bonthedot_[a-z_]+\b", block.text) for end in ("_bucket",)}
    assert named <= METRICS | NO_METRICS, f"there are no metrics {sorted(named - METRICS)}"


def told(wrong: BaseException) -> str:
    if isinstance(wrong, OnTheDotError) and getattr(wrong, "problems", None):
        return "; ".join(f"{each.path}: {each.message}" for each in wrong.problems)  # type: ignore[attr-defined]
    return getattr(wrong, "message", None) or str(wrong) or repr(wrong)


def problems_of(blocks: list[Block], directory: Path, unchecked: Container[tuple[str, str]] = UNCHECKED) -> list[str]:
    """What is wrong with the blocks of a page."""
    (directory / "jobs.yaml").write_text(json.dumps({"jobs": [OLD_JOB | {"key": "nightly"}]}))
    (directory / "report.py").write_text("print(1)\n")
    checker, found = Checker(directory), []
    for block in blocks:
        if block.file:
            (directory / block.file).write_text(block.text)
    with offline(directory):
        for block in blocks:
            if (block.page, block.first) in unchecked:
                continue
            try:
                names_exist(block)
                require(
                    block.language in CHECKS, f"the language {block.language!r}, and UNCHECKED has no {block.first!r}"
                )
                CHECKS[block.language](block, checker)
            except (Exception, SystemExit) as wrong:
                found.append(f"{block.place}: {told(wrong)}")
    return found


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_right(page: str, tmp_path: Path) -> None:
    found = problems_of(PAGES[page], tmp_path)
    assert not found, "\n".join(found)


def test_blocks_are_found() -> None:
    languages = Counter(block.language for blocks in PAGES.values() for block in blocks)
    assert languages["sh"] > 150
    assert set(CHECKS) <= set(languages), "a check without a block"


def test_nothing_is_excused_in_vain(tmp_path: Path) -> None:
    every = [block for blocks in PAGES.values() for block in blocks]
    there = {(block.page, block.first) for block in every}
    assert sorted(set(UNCHECKED) - there) == []
    excused = [block for block in every if (block.page, block.first) in UNCHECKED]
    assert [block.place for block in excused if not problems_of([block], tmp_path, ())] == [], "they can be checked"
    typed = [each for block in every if CHECKS.get(block.language) in (shell, crontab) for each in typed_in(block)]
    programs = {Path(command.words[0]).name or command.words[0] for command in typed if command.words}
    words = "\n".join(word for command in typed for word in command.words)
    assert sorted(set(PROGRAMS) - programs) == []
    assert sorted(text for text in (*SHOWN, *THEIRS, *REFUSED) if text not in words) == []
    tests = {test for why in UNCHECKED.values() for test in re.findall(r"tests/[\w/]+\.py", why)}
    assert [test for test in sorted(tests) if not (ROOT / test).exists()] == []
    texts = {page: "".join(block.text for block in blocks) for page, blocks in PAGES.items()}
    assert [name for page, names in PLAIN.items() for name in names if name not in texts[page]] == []
    assert [name for name in NO_METRICS if name not in "".join(texts.values())] == []


JOB = '{"schedule": {"every": "1h"}, "target": {"type": "webhook", "url": "http://127.0.0.1:5003/"}}'
RIGHT = {
    "sh": (
        f"curl -X POST http://127.0.0.1:8000/v1/jobs -d '{JOB}'",
        "onthedot --ca ca.pem jobs list --limit 5 && docker compose logs -f witness",
        "make chaos SIZE=smoke && pip install 'onthedot[aws]'",
        "ONTHEDOT_LEASE=5s onthedot serve --roles api --port 8001",
        "onthedot jobs edit nightly --set policy.timeout=5s | jq -c .",
    ),
    "json": (JOB,),
    "toml": ('[containers]\nimages = ["alpine:*"]\n',),
}
WRONG = {
    "a command": ("sh", "onthedot jobs ad --every 1h --url http://127.0.0.1/"),
    "a command alone": ("sh", "onthedot job"),
    "an option": ("sh", "onthedot jobs list --limits 5"),
    "an option of a command that stays": ("sh", "onthedot serve --role api"),
    "a value": ("sh", "onthedot jobs list --limit many"),
    "a value of a setting": ("sh", "onthedot serve --roles apis"),
    "a value of a variable": ("sh", "ONTHEDOT_LEASE=soon onthedot serve"),
    "a cron expression": ("sh", 'onthedot jobs add --cron "0 25 * * *" --url http://127.0.0.1/'),
    "a policy": ("sh", "onthedot jobs add --every 1h --url http://127.0.0.1/ --overlap never"),
    "a field of an edit": ("sh", "onthedot jobs edit nightly --set policy.timeouts=5s"),
    "an instant": ("sh", "onthedot audit --since yesterday"),
    "a verb": ("sh", "onthedot ops start puase --tag reports"),
    "a command in a substitution": ("sh", 'id=$(onthedot scripts putt report.py)\nonthedot scripts show "$id"'),
    "a command in a container": ("sh", "docker compose exec ui sh -c 'onthedot timers 5s http://127.0.0.1/'"),
    "a command in a list": ("sh", "mkdir -p a && onthedot nodess"),
    "a command behind a prompt": ("console", "$ onthedot nodess\nID  STATE"),
    "a command that output advises": ("console", "$ make run\ntry it  onthedot echos"),
    "a cut command": ("sh", "onthedot jobs show …"),
    "a program": ("sh", "wget http://127.0.0.1:8000/v1/jobs"),
    "a path": ("sh", "curl http://127.0.0.1:8000/v1/job"),
    "a method": ("sh", "curl -X PUT http://127.0.0.1:8000/v1/jobs -d '{}'"),
    "a query": ("sh", "curl 'http://127.0.0.1:8000/v1/jobs?tags=a'"),
    "a port": ("sh", "curl http://127.0.0.1:8081/healthz"),
    "a body": ("sh", f"curl http://127.0.0.1:8000/v1/jobs -d '{JOB[:-1]}'"),
    "a field of a body": ("sh", 'curl http://127.0.0.1:8000/v1/operations -d \'{"verb": "pause", "filters": {}}\''),
    "a media type": ("sh", f"curl http://127.0.0.1:8000/v1/jobs -H 'content-type: text/html' -d '{JOB}'"),
    "a target of make": ("sh", "make rum"),
    "a variable of make": ("sh", "make sim SIZE=3"),
    "a value of make": ("sh", "make chaos SIZE=huge"),
    "a module": ("sh", "python -m proof.sims"),
    "an option of a module": ("sh", "python -m proof.sim --seedz 5"),
    "a service": ("sh", "docker compose logs -f watchdog"),
    "a number of services": ("sh", "./run.sh --scale executors=5"),
    "a value of the chart": ("sh", "helm install onthedot deploy/helm/onthedot --set secret.exists=a"),
    "a file": ("sh", "cp deploy/systemd/other.service /etc/systemd/system/"),
    "a unit": ("sh", "systemctl enable onthedot-api"),
    "an extra": ("sh", "pip install 'onthedot[gcp]'"),
    "a variable": ("sh", "export ONTHEDOT_ROLLS=api"),
    "a message": ("sh", 'redis-cli XADD jobs "*" id m1 body \'{"op": "delete", "job": "nightly"}\''),
    "a quote": ("sh", "onthedot jobs show 'nightly"),
    "JSON": ("json", '{"schedule": }'),
    "a field": ("json", JOB.replace("every", "evry")),
    "a part of a job": ("json", '{"policy": {"concurrency": {"groups": "db"}}}'),
    "a setting": ("toml", '[container]\nimages = ["alpine:*"]\n'),
    "a key of a setting": ("toml", '[containers]\nimage = ["alpine:*"]\n'),
    "a field of a jobs file": ("yaml", f"jobs: [{JOB.replace('url', 'uri')}]"),
    "a manifest": ("yaml", "apiVersion: v1\nkind: Pod\nspec: {container: []}\n"),
    "a value of a values file": ("yaml", "executor: {replica: 3}\n"),
    "a rule file": ("yaml", "scrape_configs: []\nrule_files: [other.yaml]\n"),
    "Python": ("python", "import onthedot\nonthedot.launch_scheduler(\n"),
    "an import": ("python", "from onthedot import Schedular\n"),
    "a method of ours": ("python", "from onthedot.client import Client\nwith Client() as c:\n    c.run_jobs(1)\n"),
    "an argument of ours": ("python", "from onthedot.client import Client\nwith Client(adress='a') as c:\n    pass\n"),
    "a name": ("python", "print(scheduler)\n"),
    "a crontab": ("crontab", "61 3 * * * backup\n"),
    "a metric": ("promql", "sum(onthedot_loads)"),
    "a line of a unit": ("ini", "[Service]\nDelegate=everything\n"),
    "no language": ("", "onthedot nodes"),
}


@pytest.mark.parametrize("language", RIGHT)
def test_right_blocks_pass(language: str, tmp_path: Path) -> None:
    blocks = [Block("page.md", line, language, f"{text}\n") for line, text in enumerate(RIGHT[language])]
    assert problems_of(blocks, tmp_path) == []


@pytest.mark.parametrize("what", WRONG)
def test_mistakes_are_found(what: str, tmp_path: Path) -> None:
    language, text = WRONG[what]
    (told,) = problems_of([Block("page.md", 1, language, f"{text}\n")], tmp_path)
    assert told.startswith("page.md:1: ")


def test_a_stale_excuse_is_found(tmp_path: Path) -> None:
    blocks = blocks_of("page.md", "Text\n\n  ```\n  $ onthedot nodes\n  ```\n")
    assert [(block.line, block.language, block.first) for block in blocks] == [(3, "", "$ onthedot nodes")]
    assert problems_of(blocks, tmp_path, {("page.md", "$ onthedot nodes")}) == []
    assert len(problems_of(blocks, tmp_path)) == 1
