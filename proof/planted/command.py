"""`make planted`: plant each bug, play seeds until it shows, say which and how. More than 5 % missed are a failure."""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait

import msgspec

from proof.planted.bugs import BUGS
from proof.planted.plant import Bug
from proof.planted.search import SEEDS, Caught, search

__all__ = ["WANTED", "main"]

WANTED = 0.95
BUDGET = 3600.0
"""Seconds; all of them take about half of that on two cores."""
FRESH = 60
"""Bugs after which the processes are replaced: what killed nodes leave behind adds up."""

_BY_NAME = {bug.name: bug for bug in BUGS}


def main() -> int:
    options = _options()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is part of a history
        arguments = [sys.executable, "-m", "proof.planted", *sys.argv[1:]]
        os.execve(sys.executable, arguments, {**os.environ, "PYTHONHASHSEED": "0"})
    bugs = [bug for bug in BUGS if not options.only or any(part in bug.name for part in options.only.split(","))]
    if not bugs:
        print(f"no bug has {options.only!r} in its name", file=sys.stderr)
        return 2
    began, caught = time.monotonic(), list[Caught]()
    for one in _search_all(bugs, options, began + options.budget):
        caught.append(one)
        if not options.json:
            _tell(one, len(caught), len(bugs))
    return _sum_up(bugs, caught, time.monotonic() - began, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m proof.planted", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many to try for each bug")
    parser.add_argument("--only", help="bugs whose name holds this, or one of these, separated by commas")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds after which no further bug is begun")
    parser.add_argument("--json", action="store_true", help="one JSON object with all of them")
    return parser.parse_args()


def _search_all(bugs: Sequence[Bug], options: argparse.Namespace, deadline: float) -> Iterator[Caught]:
    for first in range(0, len(bugs), FRESH):
        portion = [bug.name for bug in bugs[first : first + FRESH]]
        if options.processes <= 1 or len(bugs) == 1:
            yield from (_search_one(name, options.seeds, deadline) for name in portion)
            continue
        with ProcessPoolExecutor(options.processes, multiprocessing.get_context("spawn"), gc.freeze) as pool:
            under_way: set[Future[Caught]] = {
                pool.submit(_search_one, name, options.seeds, deadline) for name in portion
            }
            while under_way:
                done, under_way = wait(under_way, return_when="FIRST_COMPLETED")
                yield from (future.result() for future in done)


def _search_one(name: str, seeds: int, deadline: float) -> Caught:
    """The clock that a deadline is on is the same for all processes of a machine."""
    if time.monotonic() > deadline:
        return Caught(bug=name, by=None, kinds=[], error="the time was over")
    return search(_BY_NAME[name], seeds=seeds)


def _tell(one: Caught, number: int, of: int) -> None:
    bug = _BY_NAME[one.bug]
    where = one.by or ("ERROR" if one.error else "MISSED")
    print(f"{number:3}/{of} {bug.name:42} {where:8} {', '.join(one.kinds):36} {bug.what}", flush=True)
    if one.example or one.error:
        print(f"{'':50} {(one.example or one.error)[:200]}", flush=True)


def _sum_up(bugs: Sequence[Bug], caught: Sequence[Caught], seconds: float, options: argparse.Namespace) -> int:
    missed = [one for one in caught if not one.found]
    errors = [one for one in caught if one.error]
    enough = len(caught) - len(missed) >= WANTED * len(caught) and not errors
    if options.json:
        figures = {
            "bugs": len(caught),
            "found": len(caught) - len(missed),
            "missed": {one.bug: one.error or _BY_NAME[one.bug].blind for one in missed},
            "seconds": round(seconds, 1),
            "each": sorted(caught, key=lambda one: one.bug),
        }
        print(msgspec.json.format(msgspec.json.encode(figures)).decode())
        return 0 if enough else 1
    for one in missed:
        why = one.error or _BY_NAME[one.bug].blind or "nobody knows why"
        print(f"missed: {one.bug} ({_BY_NAME[one.bug].what}): {why}")
    by_tests = sum(one.by == "tests" for one in caught)
    print(f"in {seconds:.0f} s; {by_tests} of them were found by tests, the others by the simulation")
    names = "; missed: " + ", ".join(one.bug for one in missed) if missed else ""
    print(f"{len(caught) - len(missed)} of {len(caught)} planted bugs were found{names}")
    return 0 if enough else 1
