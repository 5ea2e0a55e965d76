"""The first lines of the README on a machine that has nothing of ours: how long until the first webhook arrives."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.fresh_machine import FreshMachine, blocks_of_readme
from tests.docs.blocks import blocks_of
from tests.services.waiting import until_blocking

MOST = 120
"""Seconds from nothing to the first webhook, the five of its timer included."""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[FreshMachine]:
    machine = FreshMachine(tmp_path)
    yield machine
    machine.close()


@pytest.mark.timeout(900)
def test_from_nothing_to_the_first_webhook(machine: FreshMachine) -> None:
    (*installing, serve), (receiver, timer) = blocks_of_readme(2)
    activate = installing[1].partition(" && ")[2]
    began = time.monotonic()
    machine.run(*installing)
    installed = time.monotonic()
    machine.separate()
    said = machine.terminal(activate, serve)
    until_blocking(lambda: "stop    Ctrl-C" in said.read_text(), "it serves", 60)
    arrived = machine.terminal(activate, receiver)
    until_blocking(lambda: "5003" in arrived.read_text(), "somebody listens", 30)
    machine.terminal(activate, timer)
    until_blocking(lambda: "POST / 200" in arrived.read_text(), "the webhook arrives", 60)
    took = time.monotonic() - began
    print(f"\nfirst webhook after {took:.0f} s, of which {installed - began:.0f} s to build and install")
    assert took < MOST


@pytest.mark.timeout(900)
def test_the_quick_start_says_what_make_run_says(machine: FreshMachine) -> None:
    """Line by line, and each command that it advises works."""
    (block,) = (block for block in blocks_of("README.md") if block.first.startswith("$ make run"))
    run, _, banner = block.text.strip().partition("\n")
    shown = [line for line in banner.splitlines() if line]
    began = time.monotonic()
    machine.run("scripts/venv.sh run")  # what it does first, and what alone needs a registry
    machine.separate()
    said = machine.terminal(run.removeprefix("$ ").partition("#")[0].strip())
    until_blocking(lambda: shown[-1] in said.read_text(), "it serves", 60)
    printed = [line for line in said.read_text().splitlines() if line and not line.startswith("{")]
    assert printed == shown
    receiver, timer, key = (found[0] for line in shown if (found := re.search(r"onthedot (echo|timer|keys) .*", line)))
    activate = ". .venv/bin/activate"
    arrived = machine.terminal(activate, receiver.partition("#")[0].strip())
    until_blocking(lambda: "5003" in arrived.read_text(), "somebody listens", 30)
    machine.terminal(activate, timer)
    until_blocking(lambda: "POST / 200" in arrived.read_text(), "the webhook arrives", 60)
    took = time.monotonic() - began
    print(f"\nmake run: first webhook after {took:.0f} s")
    assert took < MOST
    made = machine.terminal(activate, key)
    until_blocking(lambda: "otd_" in made.read_text(), "a key is made", 30)
