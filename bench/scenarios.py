"""What is measured: which work, of which size, by whom, and what we want to be true of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Entry", "Mode", "Scenario", "scenarios"]

Mode = Literal["tiny", "quick", "full"]


@dataclass(frozen=True)
class Entry:
    """One contestant's part: the first of a scenario is ours. `share`: slow ones get that share of the work."""

    who: str
    play: str
    given: dict[str, Any] = field(default_factory=dict)
    label: str | None = None
    share: float = 1.0


@dataclass(frozen=True)
class Scenario:
    key: str
    title: str
    figure: str  # "rate": per second, more is better; "late_ms.p99", "cpu_us_per_run": less is better
    entries: Sequence[Entry]
    given: dict[str, Any]
    echo: bool = False
    wanted: dict[str, float] = field(default_factory=dict)  # ours ÷ theirs must reach this, by their name

    @property
    def more_is_better(self) -> bool:
        return self.figure == "rate"


def scenarios(mode: Mode) -> list[Scenario]:
    """`quick` shows a change of a tenth; `full` is for docs/performance.md; `tiny` is a smoke test."""
    n = {"tiny": 200, "quick": 5000, "full": 20_000}[mode]
    seconds = {"tiny": 1, "quick": 5, "full": 20}[mode]
    pending = {"tiny": 500, "quick": 100_000, "full": 1_000_000}[mode]
    slow = n / 20_000
    found = [
        Scenario(
            "drain-jobs",
            "Drain of due one-off jobs, each with a run of its own, PostgreSQL, one process",
            "rate",
            [
                Entry("postgres", "drain"),
                Entry("pgqueuer", "drain", {"batch": 1000}),
                Entry("graphile", "drain"),
                Entry("apscheduler", "drain", share=0.1),
            ],
            {"n": n},
            wanted={"PgQueuer": 2.0, "graphile-worker": 0.8},
        ),
        Scenario(
            "drain",
            "Drain of due runs of one no-op function, PostgreSQL, one process",
            "rate",
            [
                Entry("postgres", "drain_runs"),
                Entry("pgqueuer", "drain", {"batch": 1000}),
                Entry("graphile", "drain"),
                Entry("pgboss", "drain"),
                Entry("apscheduler", "drain", share=0.1),
                Entry("procrastinate", "drain", share=0.05),
                Entry("dbos", "drain", share=0.05),
                Entry("arq", "drain", share=0.1),
                Entry("celery", "drain", share=0.1),
                Entry("bullmq", "drain", share=0.25),
            ],
            {"n": n},
            wanted={"PgQueuer": 2.0, "graphile-worker": 0.8},
        ),
        Scenario(
            "drain-sqlite",
            "Drain of due no-op functions, SQLite, one process",
            "rate",
            [Entry("sqlite", "drain"), Entry("huey", "drain", share=0.25)],
            {"n": n},
            wanted={"huey (SQLite)": 4.0},
        ),
        Scenario(
            "drain-workers",
            "Drain through worker processes (peers: in process)",
            "rate",
            [Entry("postgres", "drain_workers"), Entry("pgqueuer", "drain", {"batch": 1000})],
            {"n": max(200, n // 4)},
            wanted={"PgQueuer": 1.0},
        ),
        Scenario(
            "drain-pending",
            f"Drain with {pending:,} more pending",
            "rate",
            [
                Entry("postgres", "drain", {"pending": pending}),
                Entry("postgres", "drain", label="On the Dot, nothing else pending"),
                Entry("pgqueuer", "drain", {"batch": 1000, "pending": pending}),
                Entry("graphile", "drain", {"pending": pending}),
            ],
            {"n": max(200, n // 4)},
            wanted={"On the Dot, nothing else pending": 0.9},
        ),
        Scenario(
            "webhooks",
            "Webhooks against a receiver that is not the bottleneck",
            "rate",
            [
                Entry("postgres", "drain_webhooks"),
                Entry("pgqueuer", "drain_webhooks"),
                Entry("postgres", "bare_webhooks", label="a bare loop of the same client"),
            ],
            {"n": max(200, n // 2)},
            echo=True,
            wanted={"PgQueuer": 2.5, "a bare loop of the same client": 0.5},
        ),
        Scenario(
            "create-http",
            "Creates over HTTP at 32 connections, against single-row commits on one",
            "rate",
            [
                Entry("postgres", "create_http"),
                Entry("postgres", "single_commits", label="single-row commits, one connection"),
            ],
            {"n": max(320, n // 4)},
            wanted={"single-row commits, one connection": 3.0},
        ),
        Scenario(
            "create-bulk",
            "Creates in bulk",
            "rate",
            [
                Entry("postgres", "create_bulk"),
                Entry("pgqueuer", "create_bulk"),
                Entry("graphile", "create_bulk"),
                Entry("pgboss", "create_bulk"),
                Entry("procrastinate", "create_bulk", share=0.5),
            ],
            {"n": n},
            wanted={"PgQueuer": 1.0},
        ),
        Scenario(
            "create-one",
            "Creates one after the other, in process",
            "rate",
            [
                Entry("postgres", "create_one"),
                Entry("pgqueuer", "create_one"),
                Entry("graphile", "create_one"),
                Entry("apscheduler", "create_one"),
                Entry("procrastinate", "create_one"),
                Entry("dbos", "create_one"),
                Entry("arq", "create_one"),
                Entry("celery", "create_one"),
            ],
            {"n": max(50, int(1000 * slow))},
        ),
    ]
    for rate in (100, 500, 1000):
        peers = [Entry("pgqueuer", "lateness"), Entry("graphile", "lateness")]
        if rate == 100:
            peers += [
                Entry("apscheduler", "lateness"),
                Entry("procrastinate", "lateness"),
                Entry("huey", "lateness"),
                Entry("arq", "lateness"),
                Entry("celery", "lateness"),
            ]
        elif rate == 500 and mode == "full":
            peers.append(Entry("apscheduler", "lateness"))
        found.append(
            Scenario(
                f"late-{rate}",
                f"Lateness at {rate} firings per second",
                "late_ms.p99",
                [Entry("postgres", "lateness"), Entry("sqlite", "lateness"), *peers],
                {"rate": rate, "seconds": seconds},
                wanted={"APScheduler": 1.0},
            )
        )
    burst = {"tiny": 200, "quick": 10_000, "full": 10_000}[mode]
    found.append(
        Scenario(
            "late-burst",
            f"{burst:,} jobs due in the same second",
            "late_ms.max",
            [
                Entry("postgres", "lateness"),
                Entry("pgqueuer", "lateness"),
                Entry("graphile", "lateness"),
            ],
            {"rate": burst, "seconds": 1, "at_once": True},
        )
    )
    return found
