"""Thirty clusters, a short life each: every promise is kept, and the same seed lives the same life."""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from onthedot.clock import FakeClock
from onthedot.store.sqlite.driver import SqliteDriver
from proof.sim import command
from proof.sim.loop import VirtualLoop
from proof.sim.nemesis import PROFILES
from proof.sim.process import Process
from proof.sim.run import play, profile_of
from proof.sim.world import World

ROOT = Path(__file__).parents[2]
MINUTES = 1.6
LONGER = (1, 2, 4)
"""So many times longer lives a cluster whose users had little to do."""
SEEDS = range(2, 32)


@pytest.mark.parametrize("seed", SEEDS)
def test_seed_keeps_every_promise(seed):
    for minutes in (MINUTES * times for times in LONGER):
        outcome = play(seed, minutes=minutes)
        assert outcome.violations == [], f"again: python -m proof.sim --seed {seed} --minutes {minutes}"
        if outcome.sends > 10 and outcome.slots > 10:
            return
    pytest.fail(f"in {minutes} minutes nothing happens with seed {seed}")


def test_these_seeds_meet_every_family_of_faults():
    assert {profile_of(seed) for seed in SEEDS} == {*PROFILES, "destinations", "chains", "groups"}


def test_same_seed_same_history():
    first, second = play(6, minutes=1.2), play(6, minutes=1.2)
    assert first.faults > 0
    assert first.digest == second.digest
    assert first.turns == second.turns


def test_other_seed_other_history():
    assert play(6, minutes=1.2).digest != play(8, minutes=1.2).digest


def test_command_plays_a_seed_again_in_another_process():
    def again() -> dict[str, object]:
        line = [sys.executable, "-m", "proof.sim", "--seed", "10", "--minutes", "1.2", "--json"]
        environment = {**os.environ, "PYTHONHASHSEED": "random"}
        done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
        return msgspec.json.decode(done.stdout, type=dict[str, object])

    first, second = again(), again()
    assert first["broken_seeds"] == []
    assert first["digest"] is not None
    assert first["digest"] == second["digest"]


def test_processes_are_replaced_and_every_seed_is_played(monkeypatch):
    """They were replaced one by one, until once none was left and nobody came: a thousand seeds ended at a hundred."""
    monkeypatch.setattr(command, "FRESH", 1)
    options = argparse.Namespace(minutes=0.2, profile=None, tail=0, processes=2)
    played = list(command._play_all([1, 2, 3, 4, 5], options))
    assert sorted(outcome.seed for outcome in played) == [1, 2, 3, 4, 5]
    assert len({outcome.digest for outcome in played}) == 5


def test_who_is_killed_while_frozen_does_not_wake():
    """The fault that froze it thaws it later; the dead one beat and claimed beside the life that had begun since."""
    loop = VirtualLoop()
    world = World(loop, seed=1)
    process = Process(
        "n0",
        loop=loop,
        driver=SqliteDriver(":memory:", FakeClock(), threads=False),
        database=world.database,
        receiver=world.receiver,
        history=world.history,
        rng=random.Random(1),
        wall_ms=0,
    )
    process.freeze()
    process.kill()
    process.thaw()
    loop.close()
    assert process.place.standing
