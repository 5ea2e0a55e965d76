"""Which sandbox a node takes, and what it says where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from onthedot.targets.script import probe
from onthedot.targets.script.bubblewrap import Bubblewrap
from onthedot.targets.script.interpreters import Interpreter
from onthedot.targets.script.landlock import LandlockSandbox
from onthedot.targets.script.probe import REMEDY, NoSandbox, bubblewrap_program, find_sandbox, trial
from tests.targets.sandboxes import sandbox_named


def without_bubblewrap(monkeypatch: pytest.MonkeyPatch, program: str | None = None) -> None:
    monkeypatch.setattr(probe, "bubblewrap_program", lambda: program)


async def test_bubblewrap_is_taken_first():
    sandbox_named("rlimits")
    assert isinstance(await find_sandbox(), Bubblewrap)


@pytest.mark.parametrize("program", [None, "/bin/false", "/bin/true", "/no/such/bwrap"])
async def test_without_it_landlock_is_taken(monkeypatch: pytest.MonkeyPatch, program: str | None):
    """Also where it is there and does not work: what prints nothing of what bubblewrap prints has set up nothing."""
    sandbox_named("landlock")
    without_bubblewrap(monkeypatch, program)
    assert isinstance(await find_sandbox(), LandlockSandbox)


async def test_without_either_there_is_none_and_it_is_said_why(monkeypatch: pytest.MonkeyPatch):
    without_bubblewrap(monkeypatch)
    monkeypatch.setattr(probe, "abi", lambda: 3)
    found = await find_sandbox()
    assert found == NoSandbox(
        "bubblewrap is not installed; Landlock: the kernel has ABI 3; 4 or later is required", REMEDY
    )


async def test_a_bubblewrap_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
    broken.chmod(0o755)
    sandbox = Bubblewrap(str(broken), None)
    sandbox._user = {}  # the folder of a test may be closed to others
    assert (await trial(sandbox, Interpreter(("/bin/true",), ())) or "").endswith("uid map: Permission denied")


async def test_elsewhere_than_on_linux_there_is_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    found = await find_sandbox()
    assert isinstance(found, NoSandbox)
    assert "scripts need Linux" in found.why


async def test_a_program_in_a_folder_of_root_is_copied_to_where_others_can_execute_it():
    program = bubblewrap_program()
    assert program is not None
    copy = probe._copied(program)
    assert copy != program
    assert probe._is_reachable(Path(copy))
    assert await trial(Bubblewrap(copy, None), Interpreter(("/bin/true",), ())) is None


def test_what_only_its_owner_can_reach_is_known(tmp_path: Path):
    tmp_path.chmod(0o700)
    program = tmp_path / "bwrap"
    program.touch(0o755)
    assert not probe._is_reachable(program)
