"""Plant one bug and look whether anybody sees it: seeds of the simulation one after another, or the tests it names."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import msgspec

from proof.planted.focus import focused
from proof.planted.plant import Bug, NotPlantable, planted
from proof.sim.run import Outcome, play

__all__ = ["MINUTES", "SEEDS", "Caught", "search"]

SEEDS = 8
MINUTES = 3.0
PATIENCE = 40
"""Seconds of CPU for one seed: a bug may keep the simulation from ever ending."""
TESTS_TAKE = 240.0


class Caught(msgspec.Struct, frozen=True, kw_only=True):
    """by: the seed that showed it, or the tests; None: it got away."""

    bug: str
    by: str | None
    kinds: list[str]
    example: str = ""
    seconds: float = 0.0
    error: str = ""  # it could not be planted

    @property
    def found(self) -> bool:
        return self.by is not None


def search(bug: Bug, *, seeds: int = SEEDS, minutes: float = MINUTES) -> Caught:
    began = time.monotonic()
    try:
        caught = _tested(bug) if bug.tests else _played(bug, seeds, bug.minutes or minutes)
    except NotPlantable as error:
        caught = Caught(bug=bug.name, by=None, kinds=[], error=str(error))
    return msgspec.structs.replace(caught, seconds=round(time.monotonic() - began, 1))


def _played(bug: Bug, seeds: int, minutes: float) -> Caught:
    """Play one seed after another with the bug in, until one of the violations that give it away is found. What a seed
    shows without the bug gives nothing away."""
    seen: set[str] = set()
    for seed in bug.seeds or range(1, seeds + 1):
        try:
            with planted(bug), _bounded():
                outcome = _play(seed, minutes, bug)
        except NotPlantable:
            raise
        except _Hung:
            return Caught(bug=bug.name, by=f"seed {seed}", kinds=["hung"], example="the simulation did not end")
        except Exception as error:  # what the history says can't even be read
            return Caught(bug=bug.name, by=f"seed {seed}", kinds=["raised"], example=f"{type(error).__name__}: {error}")
        seen.update(violation.kind for violation in outcome.violations)
        found = [violation for violation in outcome.violations if not bug.shows or violation.kind in bug.shows]
        if found and (new := {violation.kind for violation in found} - _without(seed, minutes, bug)):
            example = next(violation for violation in found if violation.kind in new)
            kinds = sorted({violation.kind for violation in outcome.violations})
            return Caught(bug=bug.name, by=f"seed {seed}", kinds=kinds, example=example.text)
    return Caught(bug=bug.name, by=None, kinds=sorted(seen))


def _play(seed: int, minutes: float, bug: Bug) -> Outcome:
    with focused(bug.focus):
        return play(seed, minutes=minutes, kinds=bug.faults, profile="mixed" if bug.faults is None else None, tail=0)


_seen_without: dict[tuple[int, float, str], set[str]] = {}


def _without(seed: int, minutes: float, bug: Bug) -> set[str]:
    """The kinds of violation that this play shows by itself; it should show none."""
    key = seed, minutes, repr((bug.faults, bug.focus))
    if key not in _seen_without:
        _seen_without[key] = {violation.kind for violation in _play(seed, minutes, bug).violations}
    return _seen_without[key]


def _tested(bug: Bug) -> Caught:
    """The bug is planted in the process that runs the tests: proof/planted/in_tests.py."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "proof.planted.in_tests", "--tb=line", *bug.tests]
    # What pytest was told from outside (options, "you are worker 3") is not for this one.
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    try:
        done = subprocess.run(
            command,
            env={**outside, "PLANTED": bug.name},
            capture_output=True,
            text=True,
            timeout=TESTS_TAKE,
            check=False,
        )
    except subprocess.TimeoutExpired:  # one that hangs fails long before; so this tells nothing about the bug
        return Caught(bug=bug.name, by=None, kinds=[], error=f"its tests took longer than {TESTS_TAKE:.0f} s")
    said = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode == 1 and said:
        return Caught(bug=bug.name, by="tests", kinds=[], example=said[0])
    if done.returncode != 0:
        raise NotPlantable(f"{bug.name}: pytest ended with {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
    return Caught(bug=bug.name, by=None, kinds=[])


class _Hung(BaseException):
    """Not to be caught by what hangs."""


@contextmanager
def _bounded() -> Iterator[None]:
    def hung(number: int, frame: FrameType | None) -> None:
        raise _Hung

    before = signal.signal(signal.SIGPROF, hung)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
