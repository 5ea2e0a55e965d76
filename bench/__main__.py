"""`make bench`: ours and theirs alternately on the same work; medians, spreads and ratios as text, JSON and HTML."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from bench.contestants import REDIS_SERVER, ROOT
from bench.page import page
from bench.running import Report, play_all
from bench.scenarios import scenarios
from bench.services import TUNING, services
from bench.text import markdown, verdicts

ROUNDS = {"tiny": 1, "quick": 1, "full": 3}


def main() -> int:
    asked = argparse.ArgumentParser(prog="bench", description=__doc__)
    asked.add_argument("--mode", choices=tuple(ROUNDS), default="quick")
    asked.add_argument("--only", default="", help="scenarios by key, comma-separated")
    asked.add_argument("--rounds", type=int, default=0)
    asked.add_argument("--no-peers", action="store_true")
    asked.add_argument("--out", type=Path, default=ROOT / ".bench" / "results")
    asked.add_argument("--disk", type=Path, default=None, help="where the databases lie (default: temporary files)")
    chosen = asked.parse_args()
    wanted = [s for s in scenarios(chosen.mode) if not chosen.only or s.key in chosen.only.split(",")]
    rounds = chosen.rounds or ROUNDS[chosen.mode]
    load = os.getloadavg()[0]
    with services(chosen.disk or Path("/var/tmp"), REDIS_SERVER) as places:
        reports = play_all(wanted, places, rounds=rounds, peers=not chosen.no_peers, say=_say)
        about = _about(chosen.mode, rounds, places.version, load)
    _write(reports, about, chosen.out)
    _say(markdown(reports) + "\n")
    for what, ratio, target in verdicts(reports):
        reached = ratio is not None and ratio >= target
        told = "–" if ratio is None else f"{ratio:.2f}"
        _say(f"{'reached' if reached else 'MISSED '} {what}: {told} (wanted {target})")
    _say(f"\n{chosen.out / 'bench.html'}")
    return 0


def _about(mode: str, rounds: int, version: str, load: float) -> dict[str, Any]:
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "mode": f"{mode}, {rounds} round(s), median of the rounds; ratios are taken round by round",
        "machine": f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}",
        "load before": f"{load:.1f} (1 minute average; above 0.5 other work shares the cores and only ratios count)",
        "PostgreSQL": f"{version}, fsync on, {', '.join(f'{name}={value}' for name, value in TUNING.items())}",
    }


def _write(reports: list[Report], about: dict[str, Any], out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    raw = {
        "about": about,
        "scenarios": [
            {
                "key": report.scenario.key,
                "title": report.scenario.title,
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
    (out / "bench.json").write_bytes(msgspec.json.format(json.dumps(raw).encode(), indent=1))
    (out / "bench.html").write_text(page(reports, about))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
