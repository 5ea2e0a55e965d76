"""How much machine a load takes: jobs, firings and payloads in, cores, disk and connections out.

    python -m bench.capacity                       # the load that On the Dot is built for
    python -m bench.capacity --jobs 100000 --runs 500000 --job-kb 1 --run-kb 0.5 --us-node 100 --us-database 150

The costs per run and per job are measured ones (`make bench` prints CPU a run, the node's and the database's); give
those of your own machine with --us-node and --us-database. No figure here knows of bursts: --peak does.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from math import ceil

__all__ = ["Costs", "Load", "Needs", "main", "needs"]

DAY_SECONDS = 86_400
ROW_OVERHEAD = 24 + 8  # PostgreSQL's tuple header and line pointer, alignment
HISTORY_ROW = 260  # a ledger row without its payload, as stored
HISTORY_INDEXES = 3 * 60
JOB_ROW = 320
JOB_INDEXES = 6 * 40
WAL_SHARE = 2.0  # WAL a run in relation to what stays: row versions that come and go
BUSY = 0.6  # of a core, planned for: the rest is for bursts, vacuum and the death of a node


@dataclass(frozen=True)
class Load:
    """What is asked of the system. Payloads are what a job and a run bring along, in KB."""

    jobs_a_day: int = 1_728_000
    runs_a_day: int = 8_640_000
    job_kb: float = 10.0
    run_kb: float = 3.0
    retention_days: int = 30
    run_seconds: float = 0.2  # how long a target takes to answer
    peak: float = 10.0  # the busiest second in relation to the average one


@dataclass(frozen=True)
class Costs:
    """CPU in µs, measured: of a node and of the database, for a run from claim to ledger, and for a create."""

    node_us: float = 100.0
    database_us: float = 150.0
    create_node_us: float = 400.0
    create_database_us: float = 120.0


@dataclass(frozen=True)
class Needs:
    runs_a_second: float
    peak_runs_a_second: float
    new_jobs_a_second: float
    node_cores: int
    database_cores: int
    at_once: int
    nodes: int
    connections: int
    gb_a_day: float
    disk_gb: float
    payload_gb_a_day: float
    wal_gb_a_day: float


def needs(load: Load, costs: Costs, *, node_concurrency: int = 1000, pool: int = 10) -> Needs:
    """Cores are for the peak at 60 % busy; nodes are one more than needed, so that one may die."""
    runs, jobs = load.runs_a_day / DAY_SECONDS, load.jobs_a_day / DAY_SECONDS
    peak_runs, peak_jobs = runs * load.peak, jobs * load.peak
    node_cores = (peak_runs * costs.node_us + peak_jobs * costs.create_node_us) / 1e6 / BUSY
    database_cores = (peak_runs * costs.database_us + peak_jobs * costs.create_database_us) / 1e6 / BUSY
    at_once = ceil(peak_runs * load.run_seconds)
    nodes = max(ceil(node_cores), ceil(at_once / node_concurrency)) + 1
    kept_run = load.run_kb * 1000 + HISTORY_ROW + HISTORY_INDEXES + ROW_OVERHEAD
    kept_job = load.job_kb * 1000 + JOB_ROW + JOB_INDEXES + ROW_OVERHEAD
    a_day = (load.runs_a_day * kept_run + load.jobs_a_day * kept_job) / 1e9
    rows_a_day = (load.runs_a_day * (kept_run - load.run_kb * 1000) * WAL_SHARE) / 1e9
    return Needs(
        runs_a_second=runs,
        peak_runs_a_second=peak_runs,
        new_jobs_a_second=jobs,
        node_cores=ceil(node_cores),
        database_cores=ceil(database_cores),
        at_once=at_once,
        nodes=nodes,
        connections=nodes * (pool + 1),
        gb_a_day=a_day,
        disk_gb=a_day * load.retention_days,
        payload_gb_a_day=(load.runs_a_day * load.run_kb + load.jobs_a_day * load.job_kb) / 1e6,
        wal_gb_a_day=a_day + rows_a_day,
    )


def told(load: Load, found: Needs) -> str:
    rates = f"{found.runs_a_second:,.0f} runs/s on average, {found.peak_runs_a_second:,.0f}/s at the peak"
    kept = f"{found.gb_a_day:,.1f} GB a day ({found.payload_gb_a_day:,.1f} of it payload)"
    return "\n".join(
        (
            f"{rates}; {found.new_jobs_a_second:,.0f} new jobs/s",
            f"nodes: {found.nodes} (one may die), {found.node_cores} core(s) in all; {found.at_once:,} runs at once",
            f"database: {found.database_cores} core(s), {found.connections} connections",
            f"disk: {kept}, {found.disk_gb:,.0f} GB for {load.retention_days} days",
            f"log (WAL): {found.wal_gb_a_day:,.1f} GB a day",
        )
    )


def main(arguments: list[str] | None = None) -> str:
    asked = argparse.ArgumentParser(prog="bench.capacity", description=__doc__.split("\n", 1)[0])
    asked.add_argument("--jobs", type=int, default=Load.jobs_a_day, help="new jobs a day")
    asked.add_argument("--runs", type=int, default=Load.runs_a_day, help="runs a day")
    asked.add_argument("--job-kb", type=float, default=Load.job_kb)
    asked.add_argument("--run-kb", type=float, default=Load.run_kb)
    asked.add_argument("--days", type=int, default=Load.retention_days, help="how long history is kept")
    asked.add_argument("--run-seconds", type=float, default=Load.run_seconds)
    asked.add_argument("--peak", type=float, default=Load.peak)
    asked.add_argument("--us-node", type=float, default=Costs.node_us)
    asked.add_argument("--us-database", type=float, default=Costs.database_us)
    given = asked.parse_args(arguments)
    load = Load(
        jobs_a_day=given.jobs,
        runs_a_day=given.runs,
        job_kb=given.job_kb,
        run_kb=given.run_kb,
        retention_days=given.days,
        run_seconds=given.run_seconds,
        peak=given.peak,
    )
    return told(load, needs(load, Costs(node_us=given.us_node, database_us=given.us_database)))


if __name__ == "__main__":
    sys.stdout.write(main() + "\n")
