"""What the pages say of the witness in deployments is what the files of deploy/ have: names, ports, options, alerts."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import typer.main
import yaml

from onthedot.cli.witness import witness

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PAGES = {
    name: (ROOT / "docs" / f"{name}.md").read_text() for name in ("witness", "deployment", "kubernetes-deployment")
}
MANIFESTS = [
    each for each in yaml.safe_load_all((DEPLOY / "kubernetes" / "onthedot.yaml").read_text()) if each is not None
]


def commands(page: str) -> list[list[str]]:
    """The words of each line of the sh blocks that speaks of a witness."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line, comments=True) for line in lines if "witness" in line]


def section(page: str, title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGES[page], re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def names_of(kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in MANIFESTS if each["kind"] == kind}


def test_options_that_the_pages_show_exist():
    app = typer.Typer()
    app.command()(witness)
    known = {option for each in typer.main.get_command(app).params for option in each.opts}
    shown = [words[words.index("onthedot") + 2 :] for page in PAGES for words in commands(page) if "onthedot" in words]
    assert len(shown) >= 4
    for words in shown:
        assert {word for word in words if word.startswith("--")} <= known, words


def test_the_service_of_compose_and_its_variables():
    compose: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    services = compose["services"]
    shown = [words for words in commands("deployment") if words[:2] == ["docker", "compose"]]
    assert len(shown) == 2
    for words in shown:
        assert "witness" in words
        assert words[-1] == "--once" or words[-1] in services
    port = services["witness"]["environment"]["ONTHEDOT_METRICS_PORT"]
    assert f"`http://witness:{port}`" in PAGES["deployment"]
    for name in ("ONTHEDOT_CHANNELS", "ONTHEDOT_WITNESS_PING_URL"):
        assert f"| `{name}` | none |" in PAGES["deployment"]
        assert f"${{{name}:-}}" in str(services["witness"]["environment"])


def test_what_the_chart_makes():
    text = section("kubernetes-deployment", "Witness")
    (logs,) = [words for words in commands("kubernetes-deployment") if words[0] == "kubectl"]
    assert logs[-1].removeprefix("deployment/") in names_of("Deployment")
    values = yaml.safe_load((DEPLOY / "helm" / "onthedot" / "values.yaml").read_text())
    for path in re.findall(r"`((?:witness|networkPolicy|secret)\.\w+)", text):
        part, name = path.split(".")
        assert name in values[part], path
    assert values["witness"]["enabled"] is True
    requests = values["witness"]["resources"]["requests"]
    assert f"requests {requests['cpu']} CPU and {requests['memory']} of memory" in text
    (pod,) = [each for each in MANIFESTS if (each["kind"], each["metadata"]["name"]) == ("Deployment", logs[-1][11:])]
    env = {each["name"]: each for each in pod["spec"]["template"]["spec"]["containers"][0]["env"]}
    key = env["ONTHEDOT_WITNESS_PING_URL"]["valueFrom"]["secretKeyRef"]["key"]
    assert f"the key `{key}`" in text


def test_the_unit_and_its_port():
    text = section("kubernetes-deployment", "systemd")
    unit = (DEPLOY / "systemd" / "onthedot-witness.service").read_text()
    port = re.search(r"--port (\d+)", unit)
    assert port is not None
    assert f"http://127.0.0.1:{port[1]}/healthz" in text
    assert f"`/metrics` on port {port[1]}" in text
    units = {name for words in commands("kubernetes-deployment") for name in words if name.startswith("onthedot-wit")}
    assert units == {"onthedot-witness"}
    executors = (DEPLOY / "systemd" / "onthedot-executor@.service").read_text()
    prefix = re.search(r"ONTHEDOT_METRICS_PORT=(\d+)%i", executors)
    assert prefix is not None
    assert port[1] not in {f"{prefix[1]}{number}" for number in range(1, 10)}, "an executor of the same machine has it"


def test_the_table_of_alerts():
    (group,) = yaml.safe_load((DEPLOY / "prometheus" / "onthedot-witness.rules.yaml").read_text())["groups"]
    rows = re.findall(r"^\| `(OnTheDot\w+)` \| (\w+) \|", section("witness", "Prometheus and Grafana"), re.MULTILINE)
    assert rows == [(rule["alert"], rule["labels"]["severity"]) for rule in group["rules"]]


def test_files_that_the_pages_name_exist():
    for text in PAGES.values():
        for path in re.findall(r"`(deploy/[\w./@-]+)`", text):
            assert (ROOT / path).exists(), path
