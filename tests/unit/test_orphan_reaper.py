"""Tests that are ended by force leave no server, no node and no directory behind."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.services import orphan_reaper
from tests.services.orphan_reaper import execute
from tests.services.waiting import until_blocking

ROOT = Path(__file__).resolve().parents[2]

# A test process as it is when the signal comes: a database and a node run, and no fixture gets its turn.
TESTS = """
import pathlib, sys
from tests.services import process
from tests.services.postgres import running_postgres
process.COMMAND = pathlib.Path(sys.executable)
with running_postgres() as server:
    node = process.NodeProcess("-c", "import signal; signal.pause()", directory=pathlib.Path(sys.argv[1]), port=1)
    print(server.process.pid, node.pid, server.data.parent, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def sleeper(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    monkeypatch.setattr(orphan_reaper, "PATIENCE", 0.05)  # who has not been waited for is still there, as a zombie
    yield process
    process.kill()
    process.wait()


def test_what_was_not_crossed_out_is_ended(sleeper, tmp_path):
    folder = tmp_path / "with a blank"
    (folder / "data").mkdir(parents=True)
    execute(io.StringIO(f"runs {sleeper.pid} {signal.SIGTERM.value}\nmade {folder}\n"))
    assert sleeper.wait(10) == -signal.SIGTERM
    assert not folder.exists()


def test_a_group_goes_with_all_that_is_in_it(sleeper):
    execute(io.StringIO(f"runs -{sleeper.pid} {signal.SIGKILL.value}\n"))
    assert sleeper.wait(10) == -signal.SIGKILL


def test_what_was_crossed_out_is_left_alone(sleeper, tmp_path):
    lines = f"runs {sleeper.pid} {signal.SIGTERM.value}\nmade {tmp_path}\nended {sleeper.pid}\nremoved {tmp_path}\n"
    execute(io.StringIO(lines))
    assert sleeper.poll() is None
    assert tmp_path.exists()


def test_tests_that_are_killed_leave_nothing(tmp_path):
    tests = subprocess.Popen(
        [sys.executable, "-c", TESTS, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert tests.stdout is not None
    assert tests.stdin is not None
    server, node, folder = tests.stdout.readline().split()
    assert psutil.pid_exists(int(server))
    assert psutil.pid_exists(int(node))
    tests.kill()
    tests.wait(10)
    until_blocking(lambda: not any(map(_runs, (server, node))), "both have ended")
    until_blocking(lambda: not Path(folder).exists(), "the data is gone")
    tests.stdin.close()
    tests.stdout.close()


def _runs(pid: str) -> bool:
    try:
        return psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
