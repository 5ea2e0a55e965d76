"""How much machine a load takes: jobs, firings, requests and payloads in, cores, disk and connections out.

    python -m bench.capacity                       # the load that On the Dot is built for
    python -m bench.capacity --jobs 100000 --runs 500000 --job-kb 1 --run-kb 0.5 --us-node 100 --us-database 150

What a run, a create and a request cost is taken from bench/measured.json, which names the run of the bench and the
machine each figure comes from; give those of your own machine with --us-node and --us-database. The averages of a day
hide the busiest second: --peak says how many times the average that is.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from math import ceil
from typing import Self

from bench.measured import values

__all__ = ["Costs", "Load", "Needs", "main", "needs"]

DAY_SECONDS = 86_400
BUSY = 0.6  # of a core, planned for: the rest is for bursts, vacuum and the death of a node


@dataclass(frozen=True)
class Load:
    """What is asked of the system. Payloads are what a job and a run bring along, in KB of 1,000 bytes."""

    jobs_a_day: int = 1_728_000
    runs_a_day: int = 8_640_000
    requests_a_second: float = 100.0  # reads and changes over the API; creates are counted by themselves
    job_kb: float = 10.0
    run_kb: float = 3.0
    retention_days: int = 30
    run_seconds: float = 0.2  # how long a target takes to answer
    run_cpu_ms: float = (
        0.0  # what a target uses on the node itself: nothing for a webhook, a sandbox's start for a script
    )
    peak: float = 10.0  # the busiest second in relation to the average one


@dataclass(frozen=True)
class Costs:
    """CPU in µs, of a node and of the database, for a run from claim to ledger, a create and a request; bytes that stay
    and bytes of log, payloads not counted."""

    node_us: float
    database_us: float
    create_node_us: float
    create_database_us: float
    request_node_us: float
    request_database_us: float
    history_bytes: float
    job_bytes: float
    run_wal_bytes: float
    create_wal_bytes: float

    @classmethod
    def measured(cls) -> Self:
        found = values()
        return cls(
            node_us=found["run_node_us"],
            database_us=found["run_database_us"],
            create_node_us=found["create_node_us"],
            create_database_us=found["create_database_us"],
            request_node_us=found["request_node_us"],
            request_database_us=found["request_database_us"],
            history_bytes=found["history_bytes"],
            job_bytes=found["job_bytes"],
            run_wal_bytes=found["run_wal_bytes"],
            create_wal_bytes=found["create_wal_bytes"],
        )


@dataclass(frozen=True)
class Needs:
    runs_a_second: float
    peak_runs_a_second: float
    new_jobs_a_second: float
    node_cores: float
    database_cores: float
    at_once: int
    nodes: int
    connections: int
    gb_a_day: float
    disk_gb: float
    payload_gb_a_day: float
    wal_gb_a_day: float
    runs_a_database_core: float  # a second, when it does nothing else


def needs(load: Load, costs: Costs, *, node_concurrency: int = 1000, pool: int = 10) -> Needs:
    """Cores are for the peak at 60 % busy; a node is one core at most, and there is one more, so that one may die."""
    runs, jobs = load.runs_a_day / DAY_SECONDS, load.jobs_a_day / DAY_SECONDS
    node_us = runs * costs.node_us + jobs * costs.create_node_us + load.requests_a_second * costs.request_node_us
    database_us = (
        runs * costs.database_us + jobs * costs.create_database_us + load.requests_a_second * costs.request_database_us
    )
    node_cores = load.peak * (node_us + runs * load.run_cpu_ms * 1000) / 1e6 / BUSY
    database_cores = load.peak * database_us / 1e6 / BUSY
    at_once = ceil(load.peak * runs * load.run_seconds)
    nodes = max(ceil(node_cores), ceil(at_once / node_concurrency)) + 1
    payload = load.runs_a_day * load.run_kb * 1000 + load.jobs_a_day * load.job_kb * 1000
    a_day = payload + load.runs_a_day * costs.history_bytes + load.jobs_a_day * costs.job_bytes
    log = payload + load.runs_a_day * costs.run_wal_bytes + load.jobs_a_day * costs.create_wal_bytes
    return Needs(
        runs_a_second=runs,
        peak_runs_a_second=runs * load.peak,
        new_jobs_a_second=jobs,
        node_cores=node_cores,
        database_cores=database_cores,
        at_once=at_once,
        nodes=nodes,
        connections=nodes * (pool + 1),
        gb_a_day=a_day / 1e9,
        disk_gb=a_day * load.retention_days / 1e9,
        payload_gb_a_day=payload / 1e9,
        wal_gb_a_day=log / 1e9,
        runs_a_database_core=BUSY * 1e6 / costs.database_us,
    )


def told(load: Load, found: Needs) -> str:
    rates = f"{found.runs_a_second:,.0f} runs/s on average, {found.peak_runs_a_second:,.0f}/s at the peak"
    kept = f"{found.gb_a_day:,.1f} GB a day ({found.payload_gb_a_day:,.1f} of it payload)"
    carries = f"a core of it carries {found.runs_a_database_core:,.0f} runs/s"
    written = found.gb_a_day + found.wal_gb_a_day
    return "\n".join(
        (
            f"{rates}; {found.new_jobs_a_second:,.0f} new jobs/s; {load.requests_a_second:,.0f} requests/s",
            f"nodes: {found.nodes} (one may die), {found.node_cores:,.1f} cores in all; {found.at_once:,} runs at once",
            f"database: {found.database_cores:,.1f} cores, {found.connections} connections; {carries}",
            f"disk: {kept}, {found.disk_gb:,.0f} GB for {load.retention_days} days",
            f"log (WAL): {found.wal_gb_a_day:,.1f} GB a day; written in all: {written:,.1f} GB a day",
        )
    )


def main(arguments: list[str] | None = None) -> str:
    asked = argparse.ArgumentParser(prog="bench.capacity", description=__doc__.split("\n", 1)[0])
    asked.add_argument("--jobs", type=int, default=Load.jobs_a_day, help="new jobs a day")
    asked.add_argument("--runs", type=int, default=Load.runs_a_day, help="runs a day")
    asked.add_argument("--requests", type=float, default=Load.requests_a_second, help="API requests a second")
    asked.add_argument("--job-kb", type=float, default=Load.job_kb)
    asked.add_argument("--run-kb", type=float, default=Load.run_kb)
    asked.add_argument("--days", type=int, default=Load.retention_days, help="how long history is kept")
    asked.add_argument("--run-seconds", type=float, default=Load.run_seconds)
    asked.add_argument("--run-cpu-ms", type=float, default=Load.run_cpu_ms, help="what a target uses on the node")
    asked.add_argument("--peak", type=float, default=Load.peak)
    asked.add_argument("--us-node", type=float, default=None, help="CPU of a node for a run, µs")
    asked.add_argument("--us-database", type=float, default=None, help="CPU of the database for a run, µs")
    given = asked.parse_args(arguments)
    load = Load(
        jobs_a_day=given.jobs,
        runs_a_day=given.runs,
        requests_a_second=given.requests,
        job_kb=given.job_kb,
        run_kb=given.run_kb,
        retention_days=given.days,
        run_seconds=given.run_seconds,
        run_cpu_ms=given.run_cpu_ms,
        peak=given.peak,
    )
    costs = Costs.measured()
    if given.us_node is not None:
        costs = replace(costs, node_us=given.us_node)
    if given.us_database is not None:
        costs = replace(costs, database_us=given.us_database)
    return told(load, needs(load, costs))


if __name__ == "__main__":
    sys.stdout.write(main() + "\n")
