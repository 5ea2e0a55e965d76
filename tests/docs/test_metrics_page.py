"""docs/metrics.md has every metric there is, with its type, labels and meaning, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from onthedot.telemetry.metrics import Metrics
from onthedot.witness.metrics import WitnessMetrics

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "metrics.md").read_text()
ROW = re.compile(r"^\| `(\w+)` \| (counter|gauge|histogram) \| (.*?) \| (.*) \|$", re.MULTILINE)


def test_the_tables_are_what_metrics_says():
    found = ROW.findall(PAGE)
    assert len({name for name, *_ in found}) == len(found), "a metric is there twice"
    rows = {name: (kind, labels, meaning) for name, kind, labels, meaning in found}
    real = {**_real(WitnessMetrics()), **_all_of_a_node()}
    missing = [f"| `{name}` | {' | '.join(real[name])} |" for name in real if rows.get(name) != real[name]]
    assert not missing, "docs/metrics.md lacks these rows:\n" + "\n".join(missing)
    assert set(rows) == set(real), "docs/metrics.md names metrics that do not exist"


def test_every_label_is_explained():
    used = {label for _, _, labels, _ in ROW.findall(PAGE) for label in labels.split(", ")} - {"–"}
    table = PAGE.partition("## Labels")[2].partition("\n## ")[0]
    explained = {
        word for row in re.findall(r"^\| (`.*?) \| ", table, re.MULTILINE) for word in re.findall(r"`(\w+)`", row)
    }
    assert used == explained


NAMED = re.compile(r"`(onthedot_\w+)(?:`|\{|\s*[<>=])")


def test_other_pages_name_metrics_as_they_are_scraped():
    named = {(page.name, name) for page in DOCS.glob("*.md") for name in NAMED.findall(page.read_text())}
    assert ("webhooks.md", "onthedot_jobs_parked_total") in named
    real = {**_real(WitnessMetrics()), **_all_of_a_node()}
    assert {(page, name) for page, name in named if name not in real} == set()


def _all_of_a_node() -> dict[str, tuple[str, str, str]]:
    metrics = Metrics()
    metrics.requests.count("GET", "/x", 200)
    metrics.requests.time("GET", "/x", 0.1)
    return _real(metrics)


def _real(metrics: Metrics | WitnessMetrics) -> dict[str, tuple[str, str, str]]:
    """By name: type, labels and help, as /metrics has them."""
    text = metrics.text().decode()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE))
    labels = {name: _labels(metrics, text, name) for name in kinds}
    return {
        name: (kinds[name], ", ".join(labels[name]) or "–", meaning.rstrip("."))
        for name, meaning in re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE)
    }


def _labels(metrics: Metrics | WitnessMetrics, text: str, name: str) -> list[str]:
    """As declared; of what is declared nowhere, those of its first sample."""
    for collector, names in metrics.registry._collector_to_names.items():
        if name in names and hasattr(collector, "_labelnames"):
            return list(collector._labelnames)
    sample = re.search(rf"^{name}(?:_count)?{{(.*?)}} ", text, re.MULTILINE)
    return [] if sample is None else re.findall(r"(\w+)=", sample[1])
