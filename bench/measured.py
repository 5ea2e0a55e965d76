"""What the capacity model stands on: figures of bench runs, kept in bench/measured.json with where they come from.

    python -m bench.measured .bench/results/bench.json .bench/results/soak.json

takes over what those runs measured and leaves the rest as it was.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

__all__ = ["KEPT", "main", "taken", "values"]

KEPT = Path(__file__).with_name("measured.json")


@dataclass(frozen=True)
class Source:
    """The median over the rounds of our own figure in a scenario."""

    scenario: str
    figure: Callable[[Mapping[str, Any]], float]


def _of(*path: str) -> Callable[[Mapping[str, Any]], float]:
    def find(figures: Any) -> float:
        for name in path:
            figures = figures[name]
        return float(figures)

    return find


SOURCES: dict[str, tuple[Source, ...]] = {
    # Of the soak: webhooks at 500 a second, half of them of recurring jobs, the others created meanwhile, so half a
    # create is in it. Functions in the node's own process cost a third (late-1000), a drain less still.
    "run_node_us": (Source("soak", _of("cpu_us_per_run")),),
    "run_database_us": (Source("soak", _of("db_cpu_us_per_run")),),
    "run_wal_bytes": (Source("soak", _of("wal_bytes_per_run")),),
    "drain_node_us": (Source("drain-jobs", _of("cpu_us_per_run")),),
    "drain_database_us": (Source("drain-jobs", _of("db_cpu_us_per_run")),),
    "create_node_us": (Source("create-http", _of("cpu_us_per_run")),),
    "create_database_us": (Source("create-http", _of("db_cpu_us_per_run")),),
    "request_node_us": (Source("api-mix", _of("cpu_us_per_run")),),
    "request_database_us": (Source("api-mix", _of("db_cpu_us_per_run")),),
    "history_bytes": (Source("soak", _of("history_bytes_per_run")), Source("drain-jobs", _of("bytes", "history"))),
    "job_bytes": (Source("create-bulk", _of("bytes", "jobs")),),
    "create_wal_bytes": (Source("create-bulk", _of("bytes", "wal")),),
    "node_mb": (Source("soak", lambda figures: max(figures["series"]["rss_mb"])), Source("drain-jobs", _of("rss_mb"))),
}


def taken(results: list[Mapping[str, Any]], before: Mapping[str, Any]) -> dict[str, Any]:
    """The kept figures, with those replaced that these results hold."""
    kept = dict(before)
    for name, sources in SOURCES.items():
        found = [figure for source in sources if (figure := _found(results, source)) is not None]
        if found:
            kept[name] = found[0]
    return kept


def values(kept: Mapping[str, Any] | None = None) -> dict[str, float]:
    """The figures alone."""
    found = json.loads(KEPT.read_text()) if kept is None else kept
    return {name: float(figure["value"]) for name, figure in found.items()}


def _found(results: list[Mapping[str, Any]], source: Source) -> dict[str, Any] | None:
    for result in results:
        for scenario in result["scenarios"]:
            if scenario["key"] != source.scenario or not scenario["played"][0]["rounds"]:
                continue
            value = median(source.figure(figures) for figures in scenario["played"][0]["rounds"])
            about = {name: result["about"][name] for name in ("when", "commit", "machine", "load before", "mode")}
            return {"value": round(value, 1), "scenario": source.scenario, **about}
    return None


def main(paths: list[str]) -> str:
    before = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    kept = taken([json.loads(Path(path).read_text()) for path in paths], before)
    KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    return "\n".join(
        f"{name}: {figure['value']} ({figure['scenario']}, {figure['when']})" for name, figure in kept.items()
    )


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]) + "\n")
