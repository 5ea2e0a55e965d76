"""Our own scenarios, tiny: they run, and count what they should."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def play(scenario: str, **given: Any) -> dict[str, Any]:
    """As the bench does it: a process of its own."""
    command = [sys.executable, "-m", "bench.ours", scenario, json.dumps(given)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=55, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/bench.db"


def test_drain_on_sqlite(sqlite: str):
    figures = play("drain", store=sqlite, n=200)
    assert figures["rate"] > 0
    assert figures["claim_ms"]["p99"] > 0


def test_drain_on_postgresql_with_others_pending(postgres_url: str):
    figures = play("drain", store=postgres_url, n=100, pending=300)
    assert figures["rate"] > 0
    assert figures["rss_mb"] > 0


def test_runs_of_one_job(postgres_url: str):
    assert play("drain_runs", store=postgres_url, n=200)["rate"] > 0


def test_nothing_is_early(sqlite: str):
    late = play("lateness", store=sqlite, rate=50, seconds=1)["late_ms"]
    assert late["min"] >= 0
    assert late["p50"] <= late["p99"]


def test_creating(postgres_url: str):
    assert play("create_one", store=postgres_url, n=20)["rate"] > 0
    assert play("create_bulk", store=postgres_url, n=200)["rate"] > 0
    assert play("single_commits", store=postgres_url, n=20)["rate"] > 0


def test_creating_over_http(postgres_url: str):
    assert play("create_http", store=postgres_url, n=64)["rate"] > 0
