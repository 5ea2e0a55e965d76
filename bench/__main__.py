"""`make bench`: ours and theirs alternately on the same work; medians, spreads and ratios as text, JSON and HTML."""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from bench.contestants import REDIS_SERVER, ROOT
from bench.page import page
from bench.running import Report, play_all
from bench.scenarios import MODES, full_soak, scenarios, selected
from bench.services import TUNING, services
from bench.text import document, markdown, settings, summary
from bench.wanted import Verdict, judge

ROUNDS = {"tiny": 1, "quick": 1, "full": 3, "huge": 3, "soak": 1}
FILES = {"huge": "bench-10m", "soak": "soak"}
FULL_SOAK = "soak-full"
LEAST_RATE, LEAST_SECONDS = 20, 180


def main() -> int:
    asked = argparse.ArgumentParser(prog="bench", description=__doc__)
    asked.add_argument("--mode", choices=MODES, default="quick")
    asked.add_argument(
        "--only", default="", help="scenarios by key, or by the first word of their keys, comma-separated"
    )
    asked.add_argument("--rounds", type=int, default=0)
    asked.add_argument("--seconds", type=int, default=None, help="how long lateness is taken, or the soak goes on")
    asked.add_argument("--rate", type=int, default=None, help="firings per second of the soak")
    asked.add_argument("--full", action="store_true", help="the soak with retention, alerts and traces")
    asked.add_argument("--patroni", action="store_true", help="the full soak on a PostgreSQL pair that fails over")
    asked.add_argument("--no-peers", action="store_true")
    asked.add_argument("--list", action="store_true", help="the scenarios and who takes part, nothing is run")
    asked.add_argument("--out", type=Path, default=ROOT / ".bench" / "results")
    asked.add_argument("--disk", type=Path, default=None, help="where the databases lie (default: temporary files)")
    chosen = asked.parse_args()
    if chosen.mode != "soak" and (chosen.rate is not None or chosen.full or chosen.patroni):
        asked.error("--rate, --full and --patroni are for --mode soak")
    if chosen.rate is not None and chosen.rate < LEAST_RATE:
        asked.error(f"--rate must be at least {LEAST_RATE}")
    full = chosen.full or chosen.patroni
    if full and chosen.seconds is not None and chosen.seconds < LEAST_SECONDS:
        asked.error(f"--seconds must be at least {LEAST_SECONDS}: retention is a minute or more, and it has to show")
    soak = full_soak(chosen.seconds, chosen.rate, patroni=chosen.patroni) if full else None
    known = [soak] if soak else scenarios(chosen.mode, chosen.seconds, chosen.rate)
    keys = [key for key in chosen.only.split(",") if key]
    try:
        wanted = selected(known, keys)
    except KeyError as unknown:
        asked.error(f"no scenario {unknown.args[0]} in {chosen.mode}; there are {', '.join(s.key for s in known)}")
    if chosen.list:
        for scenario in wanted:
            who = ", ".join(entry.label or entry.who for entry in scenario.entries)
            _say(f"{scenario.key:14} {scenario.title}: {who}")
        return 0
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # else what was started would run on
    rounds, load, began = chosen.rounds or ROUNDS[chosen.mode], os.getloadavg()[0], time.monotonic()
    with services(chosen.disk or Path("/var/tmp"), REDIS_SERVER) as places:
        reports = play_all(wanted, places, rounds=rounds, peers=not chosen.no_peers, say=_say)
        version = places.version
    about = _about(chosen.mode, rounds, version, load, time.monotonic() - began) | _own_database(reports)
    verdicts = judge(reports, peers=not chosen.no_peers)
    name = FULL_SOAK if full else FILES.get(chosen.mode, "scale" if keys == ["scale"] else "bench")
    _write(reports, about, verdicts, chosen.out, name)
    _say("\n".join(f"{what}: {value}" for what, value in about.items()))
    _say(markdown(reports))
    _say(f"\n### Settings\n\n{settings(reports)}")
    _say(f"\n### Targets\n\n{summary(verdicts)}")
    for warning in (line for report in reports for line in report.warnings()):
        _say(f"WARNING {warning}")
    _say(f"\n{chosen.out / name}.html and .json, after {about['took']}")
    return 0


def _about(mode: str, rounds: int, version: str, load: float, took: float) -> dict[str, Any]:
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "mode": f"{mode}, {rounds} round(s), median of the rounds; ratios are taken round by round",
        "machine": f"{os.cpu_count()} cores ({_processor()}), {platform.system()}, Python {platform.python_version()}",
        "load before": f"{load:.1f} (1 minute average; above 0.5 other work shares the cores and only ratios count)",
        "PostgreSQL": f"{version}, fsync on, {', '.join(f'{name}={value}' for name, value in TUNING.items())}",
        "shared": "contestant, database and receiver share these cores; nothing is pinned",
        "took": f"{took:.0f} s, {_children_cpu_seconds():.0f} s of CPU",
    }


def _own_database(reports: Sequence[Report]) -> dict[str, str]:
    """What it ran on where that was not the server of the bench."""
    rounds = (figures for report in reports for seat in report.played for figures in seat.rounds)
    told = next((figures["database"] for figures in rounds if "database" in figures), None)
    return {} if told is None else {"PostgreSQL": told}


def _children_cpu_seconds() -> float:
    """Contestants, databases and receiver: all have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _commit() -> str:
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return told.stdout.strip() or "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _write(reports: Sequence[Report], about: dict[str, Any], verdicts: Sequence[Verdict], out: Path, name: str) -> None:
    out.mkdir(parents=True, exist_ok=True)
    raw = {
        "about": about,
        "wanted": [verdict.json() for verdict in verdicts],
        "warnings": [line for report in reports for line in report.warnings()],
        "scenarios": [
            {
                "key": report.key,
                "title": report.scenario.title,
                "given": report.scenario.given,
                "played": [
                    {
                        "name": seat.name,
                        "settings": seat.settings,
                        "rounds": seat.rounds,
                        "failed": seat.failed,
                        "ours_to_theirs": report.ratio(seat),
                    }
                    for seat in report.played
                ],
            }
            for report in reports
        ],
    }
    (out / f"{name}.json").write_bytes(msgspec.json.format(json.dumps(raw).encode(), indent=1))
    (out / f"{name}.md").write_text(document(reports, about, verdicts))
    (out / f"{name}.html").write_text(page(reports, about, verdicts))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
