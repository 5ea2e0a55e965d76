"""Puts what was measured into the documents, between marks; what is written by hand around them stays.

    python -m bench.document

docs/performance.md gets the results in .bench/results (bench.md, bench-10m.md, soak.md, soak-full.md), docs/scale.md
those of `make bench ONLY=scale` (scale.md) and what the capacity model says with the figures of bench/measured.json.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import capacity, measured
from bench.contestants import ROOT

__all__ = ["PERFORMANCE", "SCALE", "main", "place_results", "placed", "scale_page"]

PERFORMANCE = ROOT / "docs" / "performance.md"
SCALE = ROOT / "docs" / "scale.md"
RESULTS = ROOT / ".bench" / "results"
NAMES = ("bench", "bench-10m", "soak", "soak-full")
FACTORS = (1, 3, 10)


def placed(page: str, name: str, text: str) -> str:
    """The page with `text` between the marks of `name`; an error where the page has none."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"the page has no place marked {begin} … {end}")
    return pattern.sub(lambda _: f"{begin}\n{text.strip()}\n{end}", page)


def place_results(results: Path, page: Path, names: Sequence[str] = NAMES) -> list[str]:
    """The names of those that were there."""
    found = [name for name in names if (results / f"{name}.md").exists()]
    text = page.read_text()
    for name in found:
        text = placed(text, name, (results / f"{name}.md").read_text())
    page.write_text(text)
    return found


def scale_page(page: str) -> str:
    """The page with what the model says today, and where its figures come from."""
    model = f"```\n$ python -m bench.capacity\n{capacity.main([])}\n```\n\n{_origins()}"
    return placed(placed(page, "capacity", model), "factors", _factors())


def _origins() -> str:
    runs: dict[str, list[str]] = {}
    for name, figure in json.loads(measured.KEPT.read_text()).items():
        mode, load = figure["mode"].split(",")[0], figure["load before"].split(" ")[0]
        run = f"{mode} run of {figure['when']}, commit {figure['commit']}, {figure['machine']}, load before {load}"
        runs.setdefault(run, []).append(f"{name} {figure['value']:g}")
    lines = [f"- {run}: {', '.join(sorted(figures))}" for run, figures in sorted(runs.items())]
    return "\n".join(["The figures it uses (µs of CPU time, bytes, MB):", "", *lines])


def _factors() -> str:
    required, costs = capacity.Load(), capacity.Costs.measured()
    lines = [
        "| Load relative to the requirement | Runs/s at the peak | Node cores | Database cores | Disk for 30 days |",
        "|---|---|---|---|---|",
    ]
    for factor in FACTORS:
        load = capacity.Load(
            jobs_a_day=required.jobs_a_day * factor,
            runs_a_day=required.runs_a_day * factor,
            requests_a_second=required.requests_a_second * factor,
        )
        found = capacity.needs(load, costs)
        cores = f"{found.node_cores:,.1f} | {found.database_cores:,.1f}"
        lines.append(f"| {factor} × | {found.peak_runs_a_second:,.0f} | {cores} | {found.disk_gb / 1000:,.1f} TB |")
    return "\n".join(lines)


def main() -> str:
    found = place_results(RESULTS, PERFORMANCE)
    also = ["the capacity model", *place_results(RESULTS, SCALE, ["scale"])]
    SCALE.write_text(scale_page(SCALE.read_text()))
    return f"{PERFORMANCE.name}: {', '.join(found) or 'nothing to place'}; {SCALE.name}: {', '.join(also)}"


if __name__ == "__main__":
    sys.stdout.write(main() + "\n")
