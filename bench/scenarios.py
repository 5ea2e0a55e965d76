"""What is measured: which work, of which size, by whom, and what we want to be true of it.

`quick` shows a change of a tenth in five minutes; `full` is for docs/performance.md; `tiny` is a smoke test; `huge` and
`soak` are what takes long by itself: ten million pending jobs, and ten minutes under load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bench.wanted import Wanted

__all__ = ["EMPTY", "MODES", "Entry", "Mode", "Scenario", "full_soak", "scenarios", "selected"]

Mode = Literal["tiny", "quick", "full", "huge", "soak"]
MODES: tuple[Mode, ...] = ("tiny", "quick", "full", "huge", "soak")
EMPTY = "On the Dot, nothing else pending"
FAST = 20_000
LONG = 60_000
"""Runs that keep the fast ones busy for a second or two: in a tenth of that the start is what is measured. Drains are
the long ones: where 20,000 took 0.4 s, rounds of the same contestant were apart by a third."""
PGQUEUER, GRAPHILE, APSCHEDULER = "PgQueuer", "graphile-worker", "APScheduler"


@dataclass(frozen=True)
class Entry:
    """One contestant's part: the first of a scenario is ours. `share`: slow ones get that share of the work. `among`:
    it plays in a database that is kept for all rounds and holds that many pending jobs. `once`: in the first round
    only, for no figure is judged by it and it takes as long as it is given."""

    who: str
    play: str
    given: dict[str, Any] = field(default_factory=dict)
    label: str | None = None
    share: float = 1.0
    among: int | None = None
    once: bool = False


@dataclass(frozen=True)
class Scenario:
    key: str
    title: str
    figure: str  # "rate": per second, more is better; "late_ms.p99", "cpu_us_all": less is better
    entries: Sequence[Entry]
    given: dict[str, Any]
    receiver: bool = False
    wanted: Sequence[Wanted] = ()
    rounds: int | None = None  # where one is enough
    times: int = 1  # as many rounds, where what is judged differs by less than the rounds do
    patience: float = 900.0
    by_name: bool = False  # played only where it is asked for: it takes minutes, and gigabytes, for itself
    also: Sequence[str] = ()  # further figures that get a chart of their own


def better(figure: str) -> bool:
    """Whether more of it is better."""
    return figure.endswith("rate")


def scenarios(mode: Mode, seconds: int | None = None, rate: int | None = None) -> list[Scenario]:
    if mode == "soak":
        return [_soak(seconds or 600, rate or 500)]
    if mode == "huge":
        return [_pending(1_000_000, 10_000_000, n=20_000, key="drain-10m")]
    n = 200 if mode == "tiny" else FAST
    drained = n if mode == "tiny" else LONG
    pending = {"tiny": 500, "quick": 100_000, "full": 1_000_000}[mode]
    return [
        *_drains(mode, drained),
        _pending(pending, n=LONG if mode == "full" else n, peers=True),
        _webhooks(max(200, n // 2)),
        _queue(max(200, n // 2)),
        *_creates(mode, n),
        *_lateness(mode, seconds or {"tiny": 1, "quick": 4, "full": 10}[mode]),
        _bulkhead(mode),
        _listing(mode),
        _mix(mode),
        _pages(mode),
        _dashboards(mode),
        _bulk(mode),
        *_scale(mode),
    ]


def selected(known: Sequence[Scenario], keys: Sequence[str]) -> list[Scenario]:
    """Those with these keys; a key that none has stands for all that begin with it and a dash. None asked for: all that
    need not be. KeyError where there is none."""
    if not keys:
        return [scenario for scenario in known if not scenario.by_name]
    found = {
        key: [s for s in known if s.key == key] or [s for s in known if s.key.startswith(f"{key}-")] for key in keys
    }
    if unknown := sorted(key for key, scenarios in found.items() if not scenarios):
        raise KeyError(", ".join(unknown))
    wanted = {scenario.key for scenarios in found.values() for scenario in scenarios}
    return [scenario for scenario in known if scenario.key in wanted]


def _drains(mode: Mode, n: int) -> list[Scenario]:
    """The slow peers get less to do, least in the quick mode: what counts there is ours to the two fast ones."""
    few = min(1.0, FAST / n)
    slow = 0.2 * few if mode == "quick" else few
    fast = [
        Wanted("drain, no-op, to PgQueuer", "rate", "at least", 2.0, PGQUEUER, unit=" ×"),
        Wanted("drain, no-op, to graphile-worker", "rate", "at least", 0.8, GRAPHILE, unit=" ×"),
    ]
    return [
        Scenario(
            "drain-jobs",
            "Drain of due one-off jobs, each with a run of its own, PostgreSQL, one process",
            "rate",
            [
                Entry("postgres", "drain"),
                Entry("pgqueuer", "drain", {"batch": 1000}),
                Entry("graphile", "drain"),
                *([] if mode == "quick" else [Entry("apscheduler", "drain", share=0.1 * slow)]),
            ],
            {"n": n},
            wanted=[
                Wanted("drain of one-off jobs, to PgQueuer", "rate", "at least", 2.0, PGQUEUER, unit=" ×"),
                Wanted("drain of one-off jobs, to graphile-worker", "rate", "at least", 0.8, GRAPHILE, unit=" ×"),
            ],
            also=["cpu_us_all"],
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
                Entry("apscheduler", "drain", share=0.1 * slow),
                Entry("procrastinate", "drain", share=0.05 * slow),
                Entry("dbos", "drain", share=0.05 * slow),
                Entry("arq", "drain", share=0.1 * slow),
                Entry("celery", "drain", share=0.1 * slow),
                Entry("bullmq", "drain", share=(0.125 if mode == "quick" else 0.25) * few),
            ],
            {"n": n},
            wanted=fast,
        ),
        Scenario(
            "drain-sqlite",
            "Drain of due no-op functions, SQLite, one process",
            "rate",
            [Entry("sqlite", "drain"), Entry("huey", "drain", share=(0.1 if mode == "quick" else 0.25) * few)],
            {"n": n},
            wanted=[Wanted("drain on SQLite, to huey", "rate", "at least", 4.0, "huey (SQLite)", unit=" ×")],
        ),
        Scenario(
            "drain-workers",
            "Drain through worker processes (peers: in process)",
            "rate",
            [Entry("postgres", "drain_workers"), Entry("pgqueuer", "drain", {"batch": 1000})],
            {"n": n},
            wanted=[Wanted("drain through worker processes", "rate", "at least", 1.0, PGQUEUER, unit=" ×")],
        ),
    ]


def _pending(*levels: int, n: int, peers: bool = False, key: str = "drain-pending") -> Scenario:
    """Ours with nothing else and with each level of others pending, turn by turn, in databases that are kept.

    The most pending comes first. A thousand at a time fills a database's round trip; a hundred gives the many claims
    that a 99th percentile stands on, so both are played.
    """
    most, *others = sorted(levels, reverse=True)
    wanted = []
    entries = [Entry("postgres", "drain_and_claim", among=most, label=_among(most))]
    entries.append(Entry("postgres", "drain_and_claim", among=0, label=EMPTY))
    entries += [Entry("postgres", "drain_and_claim", among=level, label=_among(level)) for level in others]
    for level in sorted(levels):
        reach, told = (0.8 if level > 1_000_000 else 0.9), f"{level:,} more pending"
        of = _among(level)
        wanted += [
            Wanted(f"drain with {told}, to nothing else", "rate", "at least", reach, EMPTY, of, " ×"),
            Wanted(f"claim p99 with {told}, to nothing else", "claim_ms.p99", "at most", 2.0, EMPTY, of, " ×"),
            Wanted(f"node's memory with {told}, to nothing else", "rss_mb", "at most", 1.1, EMPTY, of, " ×"),
        ]
    if peers:
        entries += [
            Entry("pgqueuer", "drain", {"batch": 1000, "pending": most}),
            Entry("graphile", "drain", {"pending": most}),
        ]
    return Scenario(
        key,
        f"Drain with {' and '.join(f'{level:,}' for level in sorted(levels))} more pending",
        "rate",
        entries,
        {"n": n},
        wanted=wanted,
        patience=3600.0,
        also=["claim_ms.p99", "rss_mb", "cpu_us_all"],
    )


def _among(level: int) -> str:
    return f"On the Dot, {level:,} more pending"


def _webhooks(n: int) -> Scenario:
    bare, larger = "a bare loop of the same client", "PgQueuer, batches of 1000"
    return Scenario(
        "webhooks",
        "Webhooks against a receiver that is not the bottleneck",
        "rate",
        [
            Entry("postgres", "drain_webhooks"),
            Entry("pgqueuer", "drain_webhooks", {"batch": 100}, share=0.5),
            Entry("pgqueuer", "drain_webhooks", {"batch": 1000}, label=larger, share=0.5),
            Entry("postgres", "bare_webhooks", label=bare),
        ],
        {"n": n},
        receiver=True,
        wanted=[
            Wanted("webhooks, to PgQueuer's best", "rate", "at least", 2.5, (PGQUEUER, larger), unit=" ×"),
            Wanted("webhooks, to a bare loop of the same client", "rate", "at least", 0.5, bare, unit=" ×"),
        ],
        also=["cpu_us_all"],
    )


def _queue(n: int) -> Scenario:
    """Of a broker that was there before the clock started, and syncs as its documentation says."""
    redis, rabbit = "On the Dot, to Redis", "On the Dot, to RabbitMQ"
    return Scenario(
        "queue",
        "Messages that a broker confirmed, PostgreSQL, one process",
        "rate",
        [
            Entry("postgres", "drain_queue", {"broker": "nats"}, label="On the Dot, to NATS"),
            Entry("postgres", "drain_queue", {"broker": "redis"}, label=redis),
            Entry("postgres", "drain_queue", {"broker": "rabbitmq"}, label=rabbit),
        ],
        {"n": n},
        wanted=[
            Wanted("messages confirmed by NATS", "rate", "at least", 2000.0, unit="/s"),
            Wanted("messages confirmed by Redis", "rate", "at least", 1000.0, of=redis, unit="/s"),
            Wanted("messages confirmed by RabbitMQ", "rate", "at least", 1000.0, of=rabbit, unit="/s"),
        ],
        also=["cpu_us_all"],
    )


def _creates(mode: Mode, n: int) -> list[Scenario]:
    commits = "single-row commits, one connection"
    bare = "On the Dot, without API key and Idempotency-Key"
    few = max(50, n // (40 if mode == "quick" else 20))
    one_by_one = [
        Entry("postgres", "create_one"),
        Entry("pgqueuer", "create_one"),
        Entry("graphile", "create_one"),
        Entry("apscheduler", "create_one"),
    ]
    if mode != "quick":
        one_by_one += [Entry(who, "create_one") for who in ("procrastinate", "dbos", "arq", "celery")]
    return [
        Scenario(
            "create-http",
            "Creates over HTTP at 32 connections, against single-row commits on one",
            "rate",
            [
                Entry("postgres", "create_http"),
                Entry("postgres", "create_http_bare", label=bare),
                Entry("postgres", "single_commits", label=commits),
            ],
            {"n": max(320, n // (8 if mode == "quick" else 4))},
            wanted=[
                Wanted(
                    "HTTP creates, as the client sends them, to single-row commits",
                    "rate",
                    "at least",
                    1.0,
                    commits,
                    unit=" ×",
                ),
                Wanted(
                    "HTTP creates without keys, to single-row commits",
                    "rate",
                    "at least",
                    3.0,
                    commits,
                    of=bare,
                    unit=" ×",
                ),
            ],
        ),
        Scenario(
            "create-bulk",
            "Creates in bulk",
            "rate",
            [
                Entry("postgres", "create_bulk"),
                Entry("postgres", "create_http_bulk", label="On the Dot over HTTP, 32 connections"),
                Entry("pgqueuer", "create_bulk"),
                Entry("graphile", "create_bulk"),
                Entry("pgboss", "create_bulk"),
                Entry("procrastinate", "create_bulk", share=0.5),
            ],
            {"n": n},
            wanted=[Wanted("bulk create, to PgQueuer", "rate", "at least", 1.0, PGQUEUER, unit=" ×")],
        ),
        Scenario("create-one", "Creates one after the other, in process", "rate", one_by_one, {"n": few}),
    ]


def _lateness(mode: Mode, seconds: int) -> list[Scenario]:
    found = []
    machine = Entry("postgres", "bare_timer", label="a bare timer that fires nothing")
    for rate in (100, 500, 1000):
        peers = [Entry("apscheduler", "lateness")]
        if rate == 100 or mode == "full":
            peers += [Entry("pgqueuer", "lateness", once=rate != 100), Entry("graphile", "lateness", once=True)]
        if rate == 100 and mode != "quick":
            peers += [Entry(who, "lateness", once=True) for who in ("procrastinate", "huey", "arq", "celery")]
        if mode == "full":
            peers.append(Entry("pgboss", "lateness", once=True))
        absolute = [
            Wanted(f"lateness p50 at {rate}/s", "late_ms.p50", "at most", 1.0, unit=" ms"),
            Wanted(f"lateness p99 at {rate}/s", "late_ms.p99", "at most", 3.0, unit=" ms"),
        ]
        relative = [
            Wanted(f"lateness p50 at {rate}/s, to APScheduler", "late_ms.p50", "at most", 1.0, APSCHEDULER, unit=" ×"),
            Wanted(f"lateness p99 at {rate}/s, to APScheduler", "late_ms.p99", "at most", 1.0, APSCHEDULER, unit=" ×"),
        ]
        cpu = [
            Wanted(
                "CPU of a firing at 100/s, node and database, to PgQueuer",
                "cpu_us_all",
                "at most",
                1.0,
                PGQUEUER,
                unit=" ×",
            )
        ]
        found.append(
            Scenario(
                f"late-{rate}",
                f"Lateness at {rate:,} firings per second",
                "late_ms.p99",
                [
                    Entry("postgres", "lateness"),
                    *([] if mode == "quick" else [Entry("sqlite", "lateness"), machine]),
                    *peers,
                ],
                # At 100/s what a firing costs is judged too, and CPU is counted in hundredths of a second.
                {"rate": rate, "seconds": max(seconds, 6) if rate == 100 and mode == "quick" else seconds},
                wanted=[*absolute, *relative, *(cpu if rate == 100 else [])],
                times=3 if rate == 100 and mode == "full" else 1,
                also=["late_ms.p50", "cpu_us_all"],
            )
        )
    burst = 200 if mode == "tiny" else 10_000
    found.append(
        Scenario(
            "late-burst",
            f"{burst:,} jobs due in the same second",
            "late_ms.max",
            [
                Entry("postgres", "lateness"),
                Entry("graphile", "lateness"),
                *([] if mode == "quick" else [Entry("pgqueuer", "lateness")]),
            ],
            {"rate": burst, "seconds": 1, "at_once": True},
            wanted=[
                Wanted(f"{burst:,} in one second: the last started after", "late_ms.max", "at most", 2000, unit=" ms"),
                Wanted(f"{burst:,} in one second: none early", "late_ms.min", "at least", 0.0, unit=" ms"),
            ],
        )
    )
    return found


def _bulkhead(mode: Mode) -> Scenario:
    hanging, rate, seconds = {"tiny": (20, 50, 2), "quick": (500, 100, 6)}.get(mode, (500, 100, 15))
    return Scenario(
        "bulkhead",
        f"Lateness of other jobs with {hanging} hanging receivers of one destination, a broker that is away and all "
        f"processes for scripts taken, {rate} firings per second",
        "late_ms.p99",
        [Entry("postgres", "bulkhead")],
        {"hanging": hanging, "rate": rate, "seconds": seconds},
        receiver=True,
        wanted=[
            Wanted(
                f"lateness p99 of other jobs with {hanging} hanging receivers of one destination, a broker that is "
                "away and all processes for scripts taken, to its calm value",
                "to_calm",
                "at most",
                2.0,
                unit=" ×",
            )
        ],
        also=["calm_ms.p99", "to_calm"],
    )


def _listing(mode: Mode) -> Scenario:
    jobs, asked = {"tiny": (2000, 5), "quick": (100_000, 40)}.get(mode, (1_000_000, 200))
    return Scenario(
        "list",
        f"Listing and filtering {jobs:,} jobs over HTTP, pages of 50",
        "worst_ms.p99",
        [Entry("postgres", "listing")],
        {"jobs": jobs, "times": asked},
        rounds=1,
        patience=1800.0,
    )


def _mix(mode: Mode) -> Scenario:
    jobs, step = {"tiny": (500, 1), "quick": (10_000, 2)}.get(mode, (100_000, 10))
    return Scenario(
        "api-mix",
        f"API mix of 80 % reads over {jobs:,} jobs: the highest rate with p99 under 50 ms",
        "rate",
        [Entry("postgres", "mix")],
        {"jobs": jobs, "seconds": step, "most": 400 if mode == "tiny" else 20_000},
        wanted=[
            Wanted("API mix at 100 requests/s: p99", "at_100_ms.p99", "at most", 50.0, unit=" ms"),
            Wanted("API mix: the rate that holds p99 < 50 ms", "rate", "at least", 100.0, unit="/s"),
        ],
        rounds=1,
        patience=1800.0,
    )


def _pages(mode: Mode) -> Scenario:
    jobs, runs, asked = {"tiny": (2000, 5000, 1), "quick": (100_000, 1_000_000, 3)}.get(
        mode, (1_000_000, 10_000_000, 5)
    )
    return Scenario(
        "pages",
        f"Pages of the dashboard with {jobs:,} jobs and {runs:,} runs, in Chromium",
        "worst_ms",
        [Entry("postgres", "pages")],
        {"jobs": jobs, "runs": runs, "times": asked},
        wanted=[Wanted("first contentful paint of the slowest page", "worst_ms", "at most", 300.0, unit=" ms")],
        rounds=1,
        patience=3600.0,
    )


def _dashboards(mode: Mode) -> Scenario:
    count, rate, seconds = {"tiny": (10, 20, 2), "quick": (200, 50, 20)}.get(mode, (200, 50, 60))
    return Scenario(
        "dashboards",
        f"{count} open dashboards at a node that makes {rate} calls per second",
        "late_ms.p99",
        [Entry("postgres", "dashboards")],
        {"count": count, "rate": rate, "seconds": seconds},
        wanted=[
            Wanted(f"CPU of the node for {count} open dashboards", "node_cpu_percent", "at most", 5.0, unit=" %"),
            Wanted(f"lateness p99 added by {count} open dashboards", "added_p99_ms", "at most", 0.5, unit=" ms"),
        ],
        rounds=1,
    )


def _bulk(mode: Mode) -> Scenario:
    jobs, rate, seconds = {"tiny": (1000, 20, 15)}.get(mode, (100_000, 100, 60))
    return Scenario(
        "bulk",
        f"Bulk pause of {jobs:,} jobs while {rate} others fire each second",
        "seconds",
        [Entry("postgres", "bulk_pause")],
        {"jobs": jobs, "rate": rate, "seconds": seconds},
        wanted=[
            Wanted(f"bulk pause of {jobs:,} jobs", "seconds", "at most", 30.0, unit=" s"),
            Wanted("lateness p99 meanwhile, to its calm value", "to_calm", "at most", 2.0, unit=" ×"),
        ],
        rounds=1,
        also=["calm_ms.p99", "to_calm"],
    )


def _scale(mode: Mode) -> list[Scenario]:
    """The figures of a job service that keeps its schedule in 24 hourly partitions and asks each minute for the runs of
    the next: 8,640,000 runs and 1.7 million scripts of 10 KB a day, 83 GB, 6,000 requests a minute."""
    tiny = mode == "tiny"
    pending, times = (14_400, 5) if tiny else (8_640_000, 200)
    tenants, owners, jobs, seconds = (10, 100, 300, 1) if tiny else (1000, 10_000, 100_000, 60)
    count = 50 if tiny else 20_000
    return [
        Scenario(
            "scale-minute",
            f"The next minute's runs among {pending:,} pending, in one table and in 24 hourly partitions",
            "read_ms.p99",
            [Entry("postgres", "next_minute")],
            {"pending": pending, "times": times},
            wanted=[
                Wanted(
                    "read of a minute's runs in one table, to partitions", "to_partitions", "at most", 1.1, unit=" ×"
                ),
                Wanted("read of a minute's runs in one table: p99", "read_ms.p99", "at most", 100.0, unit=" ms"),
            ],
            rounds=1,
            by_name=True,
            patience=3600.0,
        ),
        Scenario(
            "scale-tenants",
            f"{tenants:,} tenants with keys, {owners:,} owners, {jobs:,} jobs: 6,000 requests a minute, 100 firings/s",
            "requests_ms.p99",
            [Entry("postgres", "tenants")],
            {"tenants": tenants, "owners": owners, "jobs": jobs, "rate": 100, "firings": 100, "seconds": seconds},
            receiver=True,
            wanted=[
                Wanted(
                    f"requests of {tenants:,} tenants at 100/s: p99", "requests_ms.p99", "at most", 50.0, unit=" ms"
                ),
                Wanted("requests that failed", "errors", "at most", 0.0),
                Wanted("requests answered, to those sent", "answered_share", "at least", 1.0),
                Wanted("firings recorded meanwhile, to those due", "fired_share", "at least", 1.0),
            ],
            rounds=1,
            by_name=True,
            patience=1800.0,
        ),
        Scenario(
            "scale-scripts",
            f"{count:,} different scripts of 10 KB in the object store",
            "rate",
            [Entry("postgres", "scripts")],
            {"count": count, "size": 10_000, "a_day": 1_700_000, "limit_gb": 83.0},
            wanted=[
                Wanted("scripts stored, to the 20 a second of 1.7 M a day", "rate", "at least", 20.0, unit="/s"),
                Wanted("1.7 M scripts of 10 KB a day on disk", "gb_a_day", "at most", 83.0, unit=" GB"),
                # Its file is written anew, which repairs a damaged one; its directory may grow by a block.
                Wanted("bytes on disk of a script that is there already", "again", "at most", 100.0),
            ],
            rounds=1,
            by_name=True,
            patience=1800.0,
        ),
    ]


def _soak(seconds: int, rate: int) -> Scenario:
    return Scenario(
        "soak",
        f"{seconds} s at {rate} firings per second, PostgreSQL, one node, webhooks",
        "late_ms.p99",
        [Entry("postgres", "soak")],
        {"seconds": seconds, "rate": rate},
        receiver=True,
        wanted=[
            Wanted("soak: firings recorded, to those due", "recorded_share", "at least", 0.999),
            Wanted("soak: memory of the last third, to the first", "rss_growth", "at most", 1.1, unit=" ×"),
            Wanted(
                "soak: size of the table of live runs, to that of the first third",
                "runs_growth",
                "at most",
                1.5,
                unit=" ×",
            ),
            Wanted("soak: lateness p99", "late_ms.p99", "at most", 3.0, unit=" ms"),
        ],
        rounds=1,
        patience=seconds + 600.0,
    )


def full_soak(seconds: int | None = None, rate: int | None = None, *, patroni: bool = False) -> Scenario:
    """Not a mode of its own: it is the soak with everything on. What it costs is no figure of the capacity model."""
    seconds, rate = seconds or 1800, rate or 300
    where = "a PostgreSQL pair under Patroni that fails over three times" if patroni else "PostgreSQL"
    failing = [
        Wanted("full soak: failovers", "failovers", "at least", 3.0),
        Wanted(
            "full soak: first call after a failover, beyond the databases' own time and the lease",
            "beyond_lease",
            "at most",
            10.0,
            unit=" s",
        ),
    ]
    return Scenario(
        "soak-full",
        f"{seconds} s at {rate} firings per second with retention, alerts and traces, {where}, one node, webhooks",
        "late_ms.p99",
        [Entry("postgres", "full_soak")],
        {"seconds": seconds, "rate": rate, "patroni": patroni},
        wanted=[
            Wanted("full soak: runs lost", "lost", "at most", 0.0),
            Wanted("full soak: calls doubled that no failover explains, or not due", "doubled", "at most", 0.0),
            Wanted("full soak: at-most-once runs called twice", "twice", "at most", 0.0),
            Wanted("full soak: at-most-once runs not called and not recorded", "unsent_unrecorded", "at most", 0.0),
            Wanted("full soak: measures that are not flat", "not_flat", "at most", 0.0),
            Wanted("full soak: partitions of an old day dropped", "partition_dropped", "at least", 1.0),
            Wanted("full soak: alerts opened and sent", "alerts_opened", "at least", 1.0),
            Wanted("full soak: alerts recovered and sent", "alerts_recovered", "at least", 1.0),
            Wanted("full soak: spans of calls, to calls", "traced", "at least", 0.99),
            *(failing if patroni else ()),
        ],
        rounds=1,
        patience=seconds + 1500.0,
    )
