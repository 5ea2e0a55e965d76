"""Rounds: everybody plays once, then everybody again, so that a noisy minute hits all alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.contest import TOO_SLOW
from bench.contestants import CONTESTANTS, OURS, ROOT, Contestant
from bench.scenarios import Entry, Scenario, better
from bench.services import Places
from bench.wanted import Wanted

__all__ = ["BUSY_RECEIVER", "Played", "Report", "play_all"]

BUSY_RECEIVER = 0.8
MORE_TIME = 4.0
"""How much longer the jobs of a lateness get to be stored when the first attempt was too slow."""


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
    def key(self) -> str:
        return self.scenario.key

    @property
    def wanted(self) -> Sequence[Wanted]:
        return self.scenario.wanted

    @property
    def seats(self) -> Sequence[Played]:
        return self.played

    @property
    def ours(self) -> Played:
        return self.played[0]

    def ratio(self, peer: Played, figure: str | None = None) -> float | None:
        """Ours to theirs, round by round, the median of it: above 1 is ahead of them, whatever the figure."""
        path = figure or self.scenario.figure
        pairs = zip(self.ours.figures(path), peer.figures(path), strict=False)
        ratios = [(ours / theirs if better(path) else theirs / ours) for ours, theirs in pairs if theirs and ours]
        return median(ratios) if ratios else None

    def warnings(self) -> list[str]:
        """What makes a figure doubtful."""
        found = []
        for seat in self.played:
            busy = seat.median("receiver_busy")
            if busy is not None and busy > BUSY_RECEIVER:
                found.append(
                    f"{self.key}: the receiver was {busy:.0%} busy while {seat.name} played: it may be the limit"
                )
        return found


def play_all(
    scenarios: list[Scenario], places: Places, *, rounds: int, peers: bool = True, say: Callable[[str], None]
) -> list[Report]:
    reports = []
    for scenario in scenarios:
        began = time.monotonic()
        entries = [entry for entry in scenario.entries if peers or entry.who in OURS]
        report = Report(scenario, [_seat(entry) for entry in entries])
        say(f"\n{scenario.title}")
        times = min(rounds, scenario.rounds or rounds) * scenario.times
        for number in range(times):
            for entry, seat in zip(entries, report.played, strict=True):
                if seat.failed is None and not (entry.once and number):
                    _play(scenario, entry, seat, places)
                    say(f"  {number + 1}/{times} {seat.name}: {_last(seat, scenario.figure)}")
        places.forget_seeded()
        for warning in report.warnings():
            say(f"  WARNING {warning}")
        say(f"  ({time.monotonic() - began:.0f} s)")
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
    if scenario.receiver:
        given["echo"] = places.echo
    if "n" in given:
        given["n"] = max(100, int(given["n"] * entry.share))
    try:
        figures = _asked(contestant, entry, given, places, scenario.patience)
        if figures is None:
            figures = _asked(contestant, entry, {**given, "lead": MORE_TIME}, places, scenario.patience)
        if figures is None:
            seat.failed = TOO_SLOW
        else:
            seat.rounds.append(figures)
    except subprocess.TimeoutExpired:
        seat.failed = f"not done within {scenario.patience:g} s"
    except (subprocess.CalledProcessError, json.JSONDecodeError, IndexError) as error:
        told = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        seat.failed = f"failed: {told[-1] if told else 'without a word'}"[:200]
        sys.stderr.write("\n".join(told[-8:]) + "\n")


def _asked(
    contestant: Contestant, entry: Entry, given: dict[str, Any], places: Places, patience: float
) -> dict[str, Any] | None:
    """Its figures; None: it was too slow to store its jobs before the first was due."""
    with places.empty(contestant.store) if entry.among is None else places.seeded(entry.among) as store:
        receiver = places.receiver_cpu_seconds()
        try:
            done = subprocess.run(
                [*contestant.command(entry.play), json.dumps({"store": store, **given})],
                cwd=ROOT,
                env={**os.environ, "BENCH_PATIENCE": f"{patience - 30:g}"},
                capture_output=True,
                text=True,
                timeout=patience,
                check=True,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.CalledProcessError as error:
            if TOO_SLOW in (error.stderr or "") and "lead" not in given:
                return None
            raise
        figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        if "echo" in given and "n" in given and figures.get("rate"):
            spent = places.receiver_cpu_seconds() - receiver
            figures["receiver_busy"] = spent / (given["n"] / figures["rate"])
        if entry.among is not None:
            figures |= {"among": entry.among, "seeded_seconds": places.seeding_seconds(entry.among)}
        return figures


def _shown(figures: dict[str, Any], path: str) -> str:
    value = _at(figures, path)
    return "?" if value is None else f"{value:,.0f}/s" if better(path) else f"{value:,.2f} ms"
