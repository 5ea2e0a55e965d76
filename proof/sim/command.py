"""`make sim SEEDS=1000`: play many seeds on all cores, print figures, name failing seeds and how to play them again."""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

import msgspec

from proof.sim.run import MINUTES, Outcome, play

__all__ = ["main"]

FRESH = 50
"""Seeds after which a process is replaced. What killed nodes leave behind adds up: in processes that played 500 seeds
each, and had 450 MB then, the first 300 took 3.1 s of CPU each and the last 300 took 3.7. All of them together, with
their pool: one that replaces its workers (`max_tasks_per_child`) hangs now and then on Python 3.11 (gh-115634)."""


def main() -> int:
    options = _options()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is part of a history
        os.execve(
            sys.executable, [sys.executable, "-m", "proof.sim", *sys.argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"}
        )
    seeds = [options.seed] if options.seed is not None else list(range(options.first, options.first + options.seeds))
    began, outcomes = time.monotonic(), []
    for outcome in _play_all(seeds, options):
        outcomes.append(outcome)
        if outcome.violations:
            _tell(outcome, options)
        if not options.json and (len(outcomes) % options.every == 0 or len(outcomes) == len(seeds)):
            _progress(outcomes, len(seeds), time.monotonic() - began)
    _sum_up(outcomes, time.monotonic() - began, options)
    return 1 if any(outcome.violations for outcome in outcomes) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m proof.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="virtual minutes of each")
    parser.add_argument("--profile", help="this family of faults instead of the one the seed has")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--tail", type=int, default=40, help="events shown of a failing history")
    parser.add_argument("--every", type=int, default=10, help="seeds between two lines of progress")
    parser.add_argument("--json", action="store_true", help="one JSON object with all figures")
    return parser.parse_args()


def _play_all(seeds: list[int], options: argparse.Namespace) -> Iterator[Outcome]:
    jobs = [(seed, options.minutes, options.profile, options.tail) for seed in seeds]
    if options.processes <= 1 or len(seeds) == 1:
        yield from map(_play_one, jobs)
        return
    portion, spawning = FRESH * options.processes, multiprocessing.get_context("spawn")
    for first in range(0, len(jobs), portion):
        with ProcessPoolExecutor(options.processes, spawning, gc.freeze) as pool:
            for played in as_completed([pool.submit(_play_one, job) for job in jobs[first : first + portion]]):
                yield played.result()


def _play_one(job: tuple[int, float, str | None, int]) -> Outcome:
    seed, minutes, profile, tail = job
    return play(seed, minutes=minutes, profile=profile, tail=tail)


def _tell(outcome: Outcome, options: argparse.Namespace) -> None:
    print(f"\nseed {outcome.seed} ({outcome.profile}) broke {len(outcome.violations)} promises:", file=sys.stderr)
    for violation in outcome.violations[:20]:
        print(f"  {violation.kind:14} {violation.text}", file=sys.stderr)
    for line in outcome.tail:
        print(f"    {line}", file=sys.stderr)
    extra = "".join(
        f" --{name} {value}"
        for name, value in (("minutes", options.minutes), ("profile", options.profile))
        if value is not None and value != MINUTES
    )
    print(f"  again: python -m proof.sim --seed {outcome.seed}{extra}   (history {outcome.digest})", file=sys.stderr)


def _progress(outcomes: list[Outcome], total: int, seconds: float) -> None:
    broken = sum(bool(outcome.violations) for outcome in outcomes)
    sends = sum(outcome.sends for outcome in outcomes)
    faults = sum(outcome.faults for outcome in outcomes)
    cpu = sum(outcome.seconds for outcome in outcomes)
    print(
        f"{len(outcomes):5}/{total} seeds  {sends:8} sends  {faults:6} faults  {broken} broken  "
        f"{seconds:6.0f} s  {cpu:6.0f} s of CPU ({cpu / len(outcomes):.2f} a seed)",
        flush=True,
    )


def _sum_up(outcomes: list[Outcome], seconds: float, options: argparse.Namespace) -> None:
    kinds = Counter(violation.kind for outcome in outcomes for violation in outcome.violations)
    figures = {
        "seeds": len(outcomes),
        "minutes_each": options.minutes,
        "sends": sum(outcome.sends for outcome in outcomes),
        "ledger_rows": sum(outcome.slots for outcome in outcomes),
        "faults": sum(outcome.faults for outcome in outcomes),
        "broken_seeds": sorted(outcome.seed for outcome in outcomes if outcome.violations),
        "violations": dict(sorted(kinds.items())),
        "excuses": dict(_excuses(outcomes)),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(_cpu(), 1),
        "cpu_seconds_each": round(_cpu() / len(outcomes), 3),
        "digest": outcomes[0].digest if len(outcomes) == 1 else None,
    }
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(figures)).decode())
        return
    print(
        f"{len(outcomes)} seeds × {options.minutes:g} virtual minutes in {seconds:.0f} s: "
        f"{figures['cpu_seconds']} s of CPU in all, {figures['cpu_seconds_each']} s a seed"
    )
    for why, times in _excuses(outcomes):
        print(f"excused {times:7} times: {why}")
    print(
        "violations:", dict(kinds) if kinds else "none", f"  history {figures['digest']}" if figures["digest"] else ""
    )


def _excuses(outcomes: list[Outcome]) -> list[tuple[str, int]]:
    """What the checker let pass, and how often: the most often first."""
    counted: Counter[str] = Counter()
    for outcome in outcomes:
        counted.update(outcome.excuses)
    return sorted(counted.items(), key=lambda one: (-one[1], one[0]))


def _cpu() -> float:
    """All of it, starting and importing too. Of processes that have ended: ask after the pool is closed."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
