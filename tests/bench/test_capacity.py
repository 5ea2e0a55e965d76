"""The capacity model, checked against the load that On the Dot is built for."""

from __future__ import annotations

import pytest

from bench.capacity import Costs, Load, main, needs


def test_the_required_load():
    """1,728,000 new jobs and 8,640,000 runs a day: 20 and 100 a second."""
    found = needs(Load(), Costs())
    assert (round(found.new_jobs_a_second), round(found.runs_a_second)) == (20, 100)
    assert found.payload_gb_a_day == pytest.approx(43.2)
    assert found.gb_a_day == pytest.approx(48, abs=2), "payload, rows and indexes"
    assert found.database_cores == 1
    assert found.nodes == 2, "one is enough, and one may die"


def test_payload_written_twice_is_what_the_requirement_counts():
    """About 83 GB a day: once into the table and once into the log."""
    assert 2 * needs(Load(), Costs()).payload_gb_a_day == pytest.approx(83, rel=0.05)


def test_more_of_anything_needs_no_less():
    small, large = Load(peak=1), Load(jobs_a_day=20_000_000, runs_a_day=100_000_000, peak=20)
    before, after = needs(small, Costs()), needs(large, Costs())
    assert after.node_cores > before.node_cores
    assert after.database_cores > before.database_cores
    assert after.disk_gb > before.disk_gb
    assert after.connections > before.connections


def test_long_runs_need_nodes_not_cores():
    short, long = needs(Load(), Costs()), needs(Load(run_seconds=60), Costs())
    assert long.at_once == 300 * short.at_once
    assert long.nodes > short.nodes
    assert long.node_cores == short.node_cores


def test_what_it_says():
    told = main(["--jobs", "0", "--runs", "86400", "--peak", "1", "--run-kb", "0"])
    assert "1 runs/s on average, 1/s at the peak" in told
    assert "(0.0 of it payload)" in told
