"""`make planted`: plant each bug, play seeds until it shows, say which and how. A bug that never shows is a failure."""

from __future__ import annotations

import argparse
import time

import msgspec

from proof.planted.bugs import BUGS
from proof.planted.plant import Bug, planted
from proof.sim.run import play

__all__ = ["Caught", "main", "search"]

SEEDS = 8
MINUTES = 4.0


class Caught(msgspec.Struct, frozen=True, kw_only=True):
    bug: str
    seed: int | None  # None: it got away
    kinds: list[str]
    example: str = ""


def search(bug: Bug, *, seeds: int = SEEDS, minutes: float = MINUTES) -> Caught:
    """Play one seed after another with the bug in, until one of the violations that give it away is found."""
    seen: set[str] = set()
    for seed in range(1, seeds + 1):
        with planted(bug) as plant:
            outcome = play(seed, minutes=minutes, kinds=bug.faults, plant=plant, tail=0)
        seen.update(violation.kind for violation in outcome.violations)
        found = [violation for violation in outcome.violations if violation.kind in bug.shows]
        if found:
            kinds = sorted({violation.kind for violation in outcome.violations})
            return Caught(bug=bug.name, seed=seed, kinds=kinds, example=found[0].text)
    return Caught(bug=bug.name, seed=None, kinds=sorted(seen))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proof.planted", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many to try for each bug")
    parser.add_argument("--only", help="bugs whose name holds this")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    began, caught = time.monotonic(), []
    for bug in BUGS:
        if options.only and options.only not in bug.name:
            continue
        caught.append(search(bug, seeds=options.seeds))
        if not options.json:
            _tell(bug, caught[-1])
    missed = [one.bug for one in caught if one.seed is None]
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(caught)).decode())
    else:
        print(f"{len(caught) - len(missed)} of {len(caught)} planted bugs were found", *missed, sep="; missed: ")
        print(f"in {time.monotonic() - began:.0f} s, {time.process_time():.1f} s of CPU")
    return 1 if missed else 0


def _tell(bug: Bug, one: Caught) -> None:
    where = "MISSED" if one.seed is None else f"seed {one.seed}"
    print(f"{bug.name:34} {where:8} {', '.join(one.kinds):40} {bug.what}", flush=True)
    if one.example:
        print(f"{'':34} {one.example}", flush=True)
