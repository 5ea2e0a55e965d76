"""The alerting rules, the dashboard, the chart and the units in deploy/ speak of metrics and settings that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from onthedot.settings.values import PARSERS
from onthedot.telemetry.metrics import Metrics
from onthedot.witness.metrics import FINDINGS, WitnessMetrics

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = [DEPLOY / "prometheus" / name for name in ("onthedot.rules.yaml", "onthedot-witness.rules.yaml")]
BOARD = json.loads((DEPLOY / "grafana" / "onthedot.json").read_text())
CHART = DEPLOY / "helm" / "onthedot"
SERVED = Metrics().text().decode() + WitnessMetrics().text().decode()
KINDS = dict(re.findall(r"^# TYPE (\S+) (\w+)$", SERVED, re.MULTILINE))
SERIES = {
    name + suffix
    for name, kind in KINDS.items()
    for suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))
}


def used_in(text: str) -> set[str]:
    return set(re.findall(r"\b(?:onthedot|process)_\w+", text)) - {"onthedot_build"}


def rules(*files: Path) -> list[dict[str, Any]]:
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def expressions_of_rules() -> dict[str, str]:
    found = rules(*RULES)
    assert len({rule["alert"] for rule in found}) == len(found)
    return {rule["alert"]: rule["expr"] for rule in found}


def expressions_of_board() -> dict[str, str]:
    panels: list[dict[str, Any]] = BOARD["panels"]
    return {
        f"{panel['title']} {target['refId']}": target["expr"] for panel in panels for target in panel.get("targets", [])
    }


@pytest.mark.parametrize("read", [expressions_of_rules, expressions_of_board])
def test_every_metric_of_rules_and_dashboard_exists(read):
    found = {where: used_in(expression) for where, expression in read().items()}
    assert len(found) > 15
    for where, names in found.items():
        assert names, f"{where} has no metric"
        assert names <= SERIES, f"{where}: {sorted(names - SERIES)} are not in /metrics"


def test_counters_are_read_as_rates_and_gauges_as_they_are():
    for where, expression in {**expressions_of_rules(), **expressions_of_board()}.items():
        for name in used_in(expression):
            counts = KINDS.get(name) == "counter" or name not in KINDS
            ranged = re.search(rf"(rate|increase)\({name}(_bucket)?(\{{[^}}]*\}})?\[", expression) is not None
            assert counts == ranged, f"{where}: {name}"


def test_panels_do_not_overlap():
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


def test_every_alert_says_what_it_means():
    for rule in rules(*RULES):
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description"}


def test_each_finding_of_the_witness_has_an_alert_and_only_where_a_witness_runs():
    of_nodes, of_witness = ("\n".join(rule["expr"] for rule in rules(file)) for file in RULES)
    assert set(re.findall(r'onthedot_witness_findings\{kind="(\w+)"\}', of_witness)) == set(FINDINGS)
    assert "absent(onthedot_witness_blind)" in of_witness
    assert "witness" not in of_nodes, "who has no witness uses that file alone"
    tested = yaml.safe_load((DEPLOY / "prometheus" / "onthedot-witness.rules.test.yaml").read_text())["tests"]
    alerting = {case["alertname"] for test in tested for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert alerting == {rule["alert"] for rule in rules(RULES[1])}, "each is seen to alert"


def test_the_autoscalers_read_metrics_that_exist():
    for path in ("templates/autoscaler.yaml", "examples/keda.yaml", "examples/prometheus-adapter.yaml"):
        names = used_in((CHART / path).read_text())
        assert "onthedot_load" in names
        assert names <= set(KINDS)


def test_the_adapter_serves_what_the_autoscaler_asks_for():
    """Its fields are those of prometheus-adapter, which ignores what it does not know."""
    values = yaml.safe_load((CHART / "examples" / "prometheus-adapter.yaml").read_text())
    assert set(values) == {"prometheus", "metricsRelistInterval", "rules"}
    assert set(values["rules"]) == {"default", "custom"}
    (rule,) = values["rules"]["custom"]
    assert set(rule) == {"seriesQuery", "resources", "name", "metricsQuery"}
    served = re.sub(rule["name"]["matches"], rule["name"]["as"], re.split("[{]", rule["seriesQuery"])[0])
    (scaler,) = [
        each
        for each in yaml.safe_load_all((DEPLOY.parent / "tests" / "deploy" / "production.yaml").read_text())
        if each and each["kind"] == "HorizontalPodAutoscaler"
    ]
    assert served == scaler["spec"]["metrics"][0]["pods"]["metric"]["name"]
    labels = {label: kind["resource"] for label, kind in rule["resources"]["overrides"].items()}
    assert labels == {"namespace": "namespace", "pod": "pod"}, "the labels that a PodMonitor gives each series"
    assert set(re.findall(r"(\w+)!=", rule["seriesQuery"])) == set(labels)
    assert set(re.findall(r"<<\.(\w+)>>", rule["metricsQuery"])) == {"Series", "LabelMatchers", "GroupBy"}


def test_settings_in_chart_and_units_exist():
    files = [*CHART.rglob("*.tpl"), *CHART.rglob("*.yaml"), *(DEPLOY / "systemd").iterdir()]
    named = {name for file in files for name in re.findall(r"\bONTHEDOT_([A-Z_]+[A-Z])\b", file.read_text())}
    assert {"STORE", "ROLES", "HOST", "METRICS_PORT", "NODE_NAME", "GRACE", "ADMIN_KEY"} <= named
    assert named <= set(PARSERS)
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    production = yaml.safe_load((CHART / "examples" / "values-production.yaml").read_text())
    for settings in (values["settings"], production["settings"]):
        assert set(settings) <= set(PARSERS)
        for name, value in settings.items():
            PARSERS[name](value)


def test_the_schema_of_the_values_knows_them_all():
    schema = json.loads((CHART / "values.schema.json").read_text())

    def check(values: dict[str, Any], schema: dict[str, Any], path: str) -> None:
        for name, value in values.items():
            known = schema.get("properties", {})
            assert name in known or "additionalProperties" not in schema or path == ".settings", f"{path}.{name}"
            if isinstance(value, dict) and name in known:
                check(value, known[name], f"{path}.{name}")

    for file in ("values.yaml", "examples/values-production.yaml"):
        check(yaml.safe_load((CHART / file).read_text()), schema, "")
