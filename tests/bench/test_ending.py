"""A bench that is told to end takes along what it started."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest

from bench.contestants import ROOT


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_leaves_nobody_behind(number):
    command = [sys.executable, "-m", "bench", "--mode", "tiny", "--only", "late-100", "--seconds", "60", "--no-peers"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as bench:
        assert bench.stdout is not None
        assert [bench.stdout.readline(), bench.stdout.readline()][-1].startswith("Lateness")  # all servers are up
        started = psutil.Process(bench.pid).children(recursive=True)
        bench.send_signal(number)
        assert bench.wait(30) != 0
    assert len(started) > 3  # PostgreSQL with its own, and the receiver of webhooks
    assert psutil.wait_procs(started, timeout=10)[1] == []
