"""What helm, promtool and systemd say of the files in deploy/. `make test-deploy` runs these: they fetch programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.programs import helm, promtool

pytestmark = pytest.mark.timeout(400)
DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "helm" / "onthedot"
PRODUCTION = ("-f", str(CHART / "examples" / "values-production.yaml"))
PLAIN = ("--set", "secret.existing=onthedot")


def run(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=cwd)


@pytest.mark.parametrize(
    "values", [PLAIN, PRODUCTION, ("--set", "secret.store=postgresql://u@h/d,secret.adminKey=otd_0123456789abcdef")]
)
def test_helm_has_nothing_against_the_chart(values):
    found = run(helm(), "lint", "--strict", CHART, *values)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize(
    ("values", "written"),
    [(PLAIN, DEPLOY / "kubernetes" / "onthedot.yaml"), (PRODUCTION, Path(__file__).with_name("production.yaml"))],
)
def test_the_manifests_are_those_of_the_chart(values, written):
    """GOLDEN=write writes them."""
    found = run(helm(), "template", "onthedot", CHART, "--namespace", "jobs", *values)
    assert found.returncode == 0, found.stderr
    if os.environ.get("GOLDEN") == "write":
        written.write_text(found.stdout)
    assert found.stdout == written.read_text()


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (("--set", "secret.store="), "secret.store (postgresql://…) or secret.existing is required"),
        ((*PLAIN, "--set", "settings.HOST=x"), "settings.HOST is set by the chart"),
        ((*PLAIN, "--set", "executer.replicas=3"), "executer"),
        ((*PLAIN, "--set", "witness.replicas=2"), "replicas"),
        ((*PLAIN, "--set", "witness.every=often"), "pattern"),
        ((*PLAIN, "--set", "secret.witnessPingUrl=ping.example"), "pattern"),
        ((*PLAIN, "--set", "secret.store=mysql://h/d"), "pattern"),
    ],
)
def test_wrong_values_are_refused_with_the_reason(values, told):
    found = run(helm(), "template", "onthedot", CHART, *values)
    assert found.returncode != 0
    assert told in found.stderr


@pytest.mark.parametrize("name", ["onthedot", "onthedot-witness"])
def test_prometheus_takes_the_rules_and_they_alert(name):
    folder = DEPLOY / "prometheus"
    checked = run(promtool(), "check", "rules", f"{name}.rules.yaml", cwd=folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    tested = run(promtool(), "test", "rules", f"{name}.rules.test.yaml", cwd=folder)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_prometheus_answers_what_the_adapter_asks(tmp_path):
    """For two pods of a Deployment, one of which two jobs scrape: the load of each."""
    values = yaml.safe_load((CHART / "examples" / "prometheus-adapter.yaml").read_text())
    (rule,) = values["rules"]["custom"]
    asked = {"Series": "onthedot_load", "LabelMatchers": 'namespace="jobs",pod=~"a|b"', "GroupBy": "pod"}
    query = re.sub(r"<<\.(\w+)>>", lambda found: asked[found[1]], rule["metricsQuery"])
    series = [
        ("jobs", "a", "x", 3),
        ("jobs", "a", "y", 3),
        ("jobs", "b", "x", 1),
        ("jobs", "c", "x", 9),
        ("k", "a", "x", 7),
    ]
    given = [
        {"series": f'onthedot_load{{namespace="{space}",pod="{pod}",job="{job}"}}', "values": f"{load}x10"}
        for space, pod, job, load in series
    ]
    answers = [{"labels": '{pod="a"}', "value": 3}, {"labels": '{pod="b"}', "value": 1}]
    tested = {"expr": query, "eval_time": "2m", "exp_samples": answers}
    test = {"interval": "30s", "input_series": given, "promql_expr_test": [tested]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump({"rule_files": [], "tests": [test]}))
    done = run(promtool(), "test", "rules", "test.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not there")
def test_systemd_takes_the_units(tmp_path):
    """With a program that exists here in the place of ours: systemd looks for it."""
    for unit in (DEPLOY / "systemd").iterdir():
        text = unit.read_text()
        executes = "onthedot serve" in text
        assert ("\nDelegate=memory pids cpu\n" in text) == executes, "for the limits of scripts, and nothing else"
        (tmp_path / unit.name).write_text(text.replace("/opt/onthedot/bin/onthedot", "/bin/true"))
    found = run("systemd-analyze", "verify", *tmp_path.iterdir())
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
