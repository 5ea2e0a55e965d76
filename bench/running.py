"""Rounds: everybody plays once, then everybody again, so that a noisy minute hits all alike."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.contestants import CONTESTANTS, OURS, ROOT, Contestant
from bench.scenarios import Entry, Scenario
from bench.services import Places

__all__ = ["Played", "Report", "play_all"]

PATIENCE = 900.0


@dataclass
class Played:
    """One contestant's figures in one scenario, one dict per round."""

    name: str
    settings: str
    rounds: list[dict[str, Any]] = field(default_factory=list)
    failed: str | None = None

    def figures(self, path: str) -> list[float]:
        return [value for played in self.rounds if (value := _at(played, path)) is not None]

    def median(self, path: str) -> float | None:
        values = self.figures(path)
        return median(values) if values else None


def _at(figures: Any, path: str) -> float | None:
    for name in path.split("."):
        figures = figures.get(name) if isinstance(figures, dict) else None
    return None if figures is None else float(figures)


@dataclass
class Report:
    scenario: Scenario
    played: list[Played]

    @property
    def ours(self) -> Played:
        return self.played[0]

    def ratio(self, peer: Played) -> float | None:
        """Ours to theirs, round by round, the median of it: above 1 is ahead of them, whatever the figure."""
        path = self.scenario.figure
        pairs = zip(self.ours.figures(path), peer.figures(path), strict=False)
        ratios = [
            (ours / theirs if self.scenario.more_is_better else theirs / ours) for ours, theirs in pairs if theirs
        ]
        return median(ratios) if ratios else None


def play_all(
    scenarios: list[Scenario], places: Places, *, rounds: int, peers: bool = True, say: Callable[[str], None]
) -> list[Report]:
    reports = []
    for scenario in scenarios:
        entries = [entry for entry in scenario.entries if peers or entry.who in OURS]
        report = Report(scenario, [_seat(entry) for entry in entries])
        say(f"\n{scenario.title}")
        for number in range(rounds):
            for entry, seat in zip(entries, report.played, strict=True):
                if seat.failed is None:
                    _play(scenario, entry, seat, places)
                    say(f"  {number + 1}/{rounds} {seat.name}: {_last(seat, scenario.figure)}")
        reports.append(report)
    return reports


def _last(seat: Played, figure: str) -> str:
    return seat.failed or _shown(seat.rounds[-1], figure)


def _contestant(entry: Entry) -> Contestant:
    return OURS[entry.who] if entry.who in OURS else CONTESTANTS[entry.who]


def _seat(entry: Entry) -> Played:
    contestant = _contestant(entry)
    return Played(entry.label or contestant.name, contestant.settings, failed=contestant.missing)


def _play(scenario: Scenario, entry: Entry, seat: Played, places: Places) -> None:
    contestant = _contestant(entry)
    given = {**scenario.given, **entry.given}
    if scenario.echo:
        given["echo"] = places.echo
    if "n" in given:
        given["n"] = max(100, int(given["n"] * entry.share))
    with places.empty(contestant.store) as store:
        command = [*contestant.command(entry.play), json.dumps({"store": store, **given})]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=True,
                stdin=subprocess.DEVNULL,
            )
            seat.rounds.append(json.loads(done.stdout.strip().splitlines()[-1]))
        except subprocess.TimeoutExpired:
            seat.failed = f"not done within {PATIENCE:g} s"
        except (subprocess.CalledProcessError, json.JSONDecodeError, IndexError) as error:
            told = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
            seat.failed = f"failed: {told[-1] if told else 'without a word'}"[:200]
            sys.stderr.write("\n".join(told[-8:]) + "\n")


def _shown(figures: dict[str, Any], path: str) -> str:
    value = _at(figures, path)
    return "?" if value is None else f"{value:,.0f}/s" if path == "rate" else f"{value:,.2f} ms"
