"""Our own scenarios of two versions of this repository in turns, on one server: what a change costs or saves.

    git worktree add --detach /tmp/before 4fc6111
    python -m bench.turns /tmp/before drain drain_runs drain_webhooks lateness --rounds 3

Each round plays each scenario of both, the other one first each time. What is told is the median of each figure that
both have, and how they relate. Both run with the packages of this environment; `--also` names another tree in place of
this one, and `--given drain '{"n": 20000}'` other parameters.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.contestants import ROOT
from bench.services import Places, services

__all__ = ["main"]

GIVEN: dict[str, dict[str, Any]] = {
    "create_bulk": {"n": 30_000},
    "create_http": {"n": 20_000},
    "create_http_bulk": {"n": 30_000},
    "create_one": {"n": 2_000},
    "drain": {"n": 30_000},
    "drain_runs": {"n": 30_000},
    "drain_webhooks": {"n": 30_000},
    "drain_workers": {"n": 30_000},
    "lateness": {"rate": 100, "seconds": 15},
}
QUANTILES = ("p50", "p99")
WITHIN = 600.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a directory with the other version")
    parser.add_argument("scenarios", nargs="+", choices=sorted(GIVEN))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--also", type=Path, default=ROOT, help="a directory in place of this one")
    parser.add_argument("--given", nargs=2, action="append", default=[], metavar=("SCENARIO", "JSON"))
    asked = parser.parse_args()
    for name, parameters in asked.given:
        GIVEN[name] = json.loads(parameters)
    trees = {"before": asked.before.resolve(), "after": asked.also.resolve()}
    found: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    with services(Path(tempfile.gettempdir()), None) as places:
        for number in range(asked.rounds):
            for name in asked.scenarios:
                for which in sorted(trees, reverse=number % 2 == 0):
                    for figure, value in _played(places, trees[which], name):
                        found[name, figure, which].append(value)
            _tell(found, number + 1)


def _played(places: Places, tree: Path, name: str) -> Iterator[tuple[str, float]]:
    with places.empty("postgres") as url:
        given = {"store": url, **GIVEN[name]} | ({"echo": places.echo} if name == "drain_webhooks" else {})
        command = [sys.executable, "-m", "bench.ours", name, json.dumps(given)]
        paths = os.pathsep.join([str(tree / "src"), str(tree)])  # before what this environment has installed
        environment = {**os.environ, "PYTHONPATH": paths}
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=WITHIN)
        if done.returncode:
            sys.exit(f"{name} of {tree} failed:\n{done.stderr}")
    for figure, value in json.loads(done.stdout.splitlines()[-1]).items():
        if isinstance(value, int | float):
            yield figure, float(value)
        elif isinstance(value, dict):
            yield from ((f"{figure} {q}", float(value[q])) for q in QUANTILES if value.get(q) is not None)


def _tell(found: dict[tuple[str, str, str], list[float]], rounds: int) -> None:
    print(f"\nmedians of {rounds} rounds")
    for name, figure, which in sorted(found):
        if which == "before" and (after := found.get((name, figure, "after"))):
            old, new = statistics.median(found[name, figure, "before"]), statistics.median(after)
            ratio = f"{new / old:.2f}" if old else "-"
            print(f"{name:16} {figure:28} {old:12,.2f} {new:12,.2f}  {ratio}", flush=True)


if __name__ == "__main__":
    main()
