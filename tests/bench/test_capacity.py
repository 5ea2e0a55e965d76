"""The capacity model, checked against the load that On the Dot is built for."""

from __future__ import annotations

import json

import pytest

from bench.capacity import Costs, Load, main, needs
from bench.measured import KEPT, SOURCES, taken, values

COSTS = Costs(
    node_us=500,
    database_us=300,
    create_node_us=1000,
    create_database_us=500,
    request_node_us=1000,
    request_database_us=500,
    history_bytes=500,
    job_bytes=800,
    run_wal_bytes=2000,
    create_wal_bytes=3000,
)


def test_the_required_load():
    """1,728,000 new jobs and 8,640,000 runs a day: 20 and 100 a second, and 43.2 GB of payload."""
    found = needs(Load(), COSTS)
    assert (round(found.new_jobs_a_second), round(found.runs_a_second)) == (20, 100)
    assert found.payload_gb_a_day == pytest.approx(43.2)
    assert found.gb_a_day == pytest.approx(43.2 + 8.64 * 0.5 + 1.728 * 0.8)
    assert found.wal_gb_a_day == pytest.approx(43.2 + 8.64 * 2 + 1.728 * 3)
    assert found.node_cores == pytest.approx(10 * (100 * 500 + 20 * 1000 + 100 * 1000) / 1e6 / 0.6)
    assert found.database_cores == pytest.approx(10 * (100 * 300 + 20 * 500 + 100 * 500) / 1e6 / 0.6)
    assert found.nodes == 4, "three cores' worth of nodes, and one may die"


def test_payload_written_twice_is_what_the_requirement_counts():
    """About 83 GB a day: once into the table and once into the log."""
    assert 2 * needs(Load(), COSTS).payload_gb_a_day == pytest.approx(83, rel=0.05)


def test_more_of_anything_needs_no_less():
    small, large = Load(peak=1), Load(jobs_a_day=20_000_000, runs_a_day=100_000_000, peak=20)
    before, after = needs(small, COSTS), needs(large, COSTS)
    assert after.node_cores > before.node_cores
    assert after.database_cores > before.database_cores
    assert after.disk_gb > before.disk_gb
    assert after.connections > before.connections


def test_long_runs_need_nodes_not_cores():
    short, long = needs(Load(), COSTS), needs(Load(run_seconds=60), COSTS)
    assert long.at_once == 300 * short.at_once
    assert long.nodes > short.nodes
    assert long.node_cores == short.node_cores


def test_targets_that_work_on_the_node_need_cores_there():
    idle, busy = needs(Load(), COSTS), needs(Load(run_cpu_ms=9), COSTS)
    assert busy.node_cores - idle.node_cores == pytest.approx(10 * 100 * 0.009 / 0.6)
    assert busy.database_cores == idle.database_cores


def test_what_it_says():
    told = main(["--jobs", "0", "--runs", "86400", "--peak", "1", "--run-kb", "0", "--us-database", "600"])
    assert "1 runs/s on average, 1/s at the peak" in told
    assert "(0.0 of it payload)" in told
    assert "a core of it carries 1,000 runs/s" in told


def test_every_cost_is_measured_and_names_its_run():
    kept = json.loads(KEPT.read_text())
    assert set(kept) == set(SOURCES)
    assert all(figure["when"] and figure["commit"] and figure["machine"] for figure in kept.values())
    assert Costs.measured().node_us == values()["run_node_us"] > 0


def test_a_new_run_replaces_what_it_measured_and_leaves_the_rest():
    about = dict.fromkeys(("when", "commit", "machine", "load before", "mode"), "now")
    rounds = [{"cpu_us_per_run": cost, "db_cpu_us_per_run": 1.0} for cost in (300.0, 100.0, 200.0)]
    result = {"about": about, "scenarios": [{"key": "create-http", "played": [{"rounds": rounds}]}]}
    kept = taken([result], {"create_node_us": {"value": 7.0}, "job_bytes": {"value": 8.0}})
    assert kept["create_node_us"] == {"value": 200.0, "scenario": "create-http", **about}
    assert kept["job_bytes"] == {"value": 8.0}
