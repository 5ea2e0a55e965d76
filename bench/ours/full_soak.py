"""A soak of everything at once: retention, alerts and traces are on, and with `patroni` the database fails over.

Every call is compared with what was due. A real server in a process of its own; the receiver has each call in a file
before it answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg

from bench.contest import process_cpu_seconds, quantiles
from bench.ours.serving import Server, serving
from bench.ours.wire import request, wired
from bench.services import process_at
from bench.soak.calls import Alert, Call, Compared, compare, read_record
from bench.soak.failovers import HEAD, Fault, Recovery, recovery
from bench.soak.faults import FAULTS, inflict, probing, starts
from bench.soak.load import AHEAD_MS, Load
from bench.soak.patroni import Pair, running_pair
from bench.soak.sampler import Sampler, Series, trends
from onthedot.model.duration import DAY
from tests.services.orphan_reaper import orphan_reaper
from tests.services.ports import free_port

__all__ = ["full_soak"]

LEASE, LOOKAHEAD = 5.0, 2.0  # the product's defaults
SETTLE = LEASE + 10
"""Seconds after the last call that was due in which one more could still come."""
PATIENCE = 180.0
OLD_DAYS = 40
RULES = {"all": {"on": ["failed", "recovered"], "channels": ["bench"]}}
TREND_HEAD = ("", "first", "last", "slope per hour", "rise in the second half", "flat up to", "")
Connect = Callable[[], Awaitable[asyncpg.Connection]]


@dataclass(frozen=True)
class Places:
    """What the server is given, and where things are written."""

    home: Path
    hooks: str
    collector: str
    record: Path
    retention: int

    def environ(self) -> dict[str, str]:
        return {
            "ONTHEDOT_LOG_LEVEL": "INFO",
            "ONTHEDOT_LOG_FORMAT": "json",
            "ONTHEDOT_RETENTION": f"{self.retention}s",
            "ONTHEDOT_CHANNELS": json.dumps({"bench": {"url": f"{self.hooks}alert"}}),
            "ONTHEDOT_ALERTS": json.dumps(RULES),
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.collector,
        }


async def full_soak(store: str, seconds: int, rate: int, patroni: bool = False) -> dict[str, Any]:
    """`store`: an empty database; with `patroni` a pair of servers is started instead."""
    with _places(seconds) as places:
        if not patroni:
            return await _soak(store, lambda: _connect(store), None, places, seconds, rate)
        async with running_pair(Path("/var/tmp")) as pair:
            return await _soak(pair.store, _to_primary(pair), pair, places, seconds, rate)


@contextmanager
def _places(seconds: int) -> Iterator[Places]:
    with tempfile.TemporaryDirectory(prefix="onthedot-soak-", dir="/var/tmp") as directory:
        home, hooks, collector = Path(directory), free_port(), free_port()
        record = home / "calls.txt"
        record.touch()
        with (
            process_at([sys.executable, "-m", "bench.soak.recorder", str(hooks), str(record)], hooks) as recorder,
            process_at([sys.executable, "-m", "bench.soak.collector", str(collector)], collector) as counter,
            _not_outliving(recorder, counter),
        ):
            # A minute is the least. So that tables have reached their size long before the second half begins.
            retention = max(60, min(300, seconds // 6))
            try:
                yield Places(home, f"http://127.0.0.1:{hooks}/", f"http://127.0.0.1:{collector}", record, retention)
            finally:
                if kept := os.environ.get("SOAK_KEEP"):
                    _keep(home, Path(kept))


@contextmanager
def _not_outliving(*processes: int) -> Iterator[None]:
    """They end also if we are killed."""
    for process in processes:
        orphan_reaper.runs(process, signal.SIGKILL)
    try:
        yield
    finally:
        for process in processes:
            orphan_reaper.ended(process)


async def _soak(
    store: str, connect: Connect, pair: Pair | None, places: Places, seconds: int, rate: int
) -> dict[str, Any]:
    async with serving(store, "api,executor", places.environ(), places.home) as server:
        orphan_reaper.runs(server.pid, signal.SIGKILL)
        began = int(time.time() + AHEAD_MS / 1000 + 3)
        load = Load(server.port, places.hooks, began * 1000, seconds, rate)
        await load.recurring()
        sampler, cpu = Sampler(server, places.home, connect), process_cpu_seconds(server.pid)
        async with asyncio.TaskGroup() as all_of_it:
            all_of_it.create_task(load.arrivals())
            all_of_it.create_task(sampler.run(began, began + seconds))
            old = all_of_it.create_task(_old_partition(connect, began + seconds * 0.5))
            failing = all_of_it.create_task(_faults(pair, began, seconds))
        await _until_called(places.record, load, began + seconds)
        spent = process_cpu_seconds(server.pid) - cpu
        dropped = await _is_gone(connect, old.result())
        counts, metrics = await asyncio.to_thread(_collected, places.collector), await _metrics(server)
        calls, alerts = read_record(places.record)
        recoveries = _recoveries(failing.result(), calls, began + seconds)
        compared = compare(load.due, calls, [each.window() for each in recoveries])
        ledger = await _ledger(connect, compared)
        series = sampler.series()
    orphan_reaper.ended(server.pid)
    found = trends(series, rate)
    outside = _lateness(calls, recoveries)
    beyond = [each.beyond for each in recoveries if each.beyond is not None]
    return {
        "late_ms": outside,
        "lost": len(compared.lost),
        "doubled": len(compared.doubled) + len(compared.strange),
        "twice": len(compared.twice),
        "unsent_unrecorded": ledger["not recorded"],
        "not_flat": sum(not each.flat for each in found),
        "partition_dropped": int(dropped),
        "alerts_opened": sum(alert.incidents for alert in alerts if alert.event == "opened"),
        "alerts_recovered": sum(alert.incidents for alert in alerts if alert.event == "recovered"),
        "traced": counts.get("call spans", 0) / max(1, len(calls)),
        "beyond_lease": max(beyond) if recoveries and len(beyond) == len(recoveries) else None,
        "failovers": len(recoveries),
        "cpu_us_per_run": spent / max(1, len(calls)) * 1e6,
        **({} if pair is None else {"database": await pair.about()}),
        "series": _filled(series),
        "tables": [
            {"head": ["", ""], "rows": _said(compared, load, ledger, alerts, counts, metrics, places, dropped)},
            {"head": TREND_HEAD, "rows": [each.row() for each in found]},
            *([{"head": HEAD, "rows": [each.row(began) for each in recoveries]}] if recoveries else []),
        ],
        "examples": {name: getattr(compared, name)[:20] for name in ("lost", "unsent", "doubled", "twice", "strange")},
    }


def _filled(series: Series) -> dict[str, list[float]]:
    """For the charts: what was not sampled is as it was before."""
    found: dict[str, list[float]] = {}
    for name, values in series.items():
        last = next((value for value in values if value is not None), 0.0)
        found[name] = [last := last if value is None else value for value in values]
    return found


async def _faults(pair: Pair | None, began: float, seconds: int) -> list[Fault]:
    if pair is None:
        return []
    found = []
    async with probing(pair) as probe:
        for what, start in zip(FAULTS, starts(seconds), strict=True):
            await asyncio.sleep(began + start - time.time())
            found.append(await inflict(what, pair, probe))
    return found


def _recoveries(faults: list[Fault], calls: list[Call], ended: float) -> list[Recovery]:
    untils = [*(fault.gone for fault in faults[1:]), ended + PATIENCE]
    return [
        recovery(fault, calls, until, lookahead=LOOKAHEAD, lease=LEASE)
        for fault, until in zip(faults, untils, strict=True)
    ]


async def _until_called(record: Path, load: Load, ended: float) -> None:
    """All that was due has come, or it does not come any more; then a little longer, for what comes twice."""
    await asyncio.sleep(ended - time.time())
    deadline = time.time() + PATIENCE
    while time.time() < deadline:
        compared = compare(load.due, (await asyncio.to_thread(read_record, record))[0], [])
        if not compared.lost and not compared.unsent:
            break
        await asyncio.sleep(3)
    await asyncio.sleep(SETTLE)


async def _connect(store: str) -> asyncpg.Connection:
    return await asyncpg.connect(store, timeout=5, server_settings={"application_name": "soak"})


def _to_primary(pair: Pair) -> Connect:
    async def connect() -> asyncpg.Connection:
        return await (await pair.primary()).connect("soak", timeout=5)

    return connect


@asynccontextmanager
async def _database(connect: Connect) -> AsyncIterator[asyncpg.Connection]:
    connection = await connect()
    try:
        yield connection
    finally:
        await connection.close()


async def _old_partition(connect: Connect, at: float) -> str:
    """The ledger is dropped by whole days, which no soak lasts for: it gets a day of long ago, made of its own rows.
    In the middle, when no failover is under way."""
    await asyncio.sleep(at - time.time())
    day = datetime.now(UTC).date() - timedelta(days=OLD_DAYS)
    low = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
    name = f"history_{day:%Y%m%d}"
    async with _database(connect) as connection, connection.transaction():
        await connection.execute(f"CREATE TABLE {name} (LIKE history INCLUDING ALL)")
        await connection.execute(
            f"INSERT INTO {name} SELECT (jsonb_populate_record(h, jsonb_build_object('slot', slot - $1::bigint))).*"
            " FROM history h WHERE slot >= $2 LIMIT 10000",
            OLD_DAYS * DAY,
            low + OLD_DAYS * DAY,
        )
        await connection.execute(
            f"ALTER TABLE history ATTACH PARTITION {name} FOR VALUES FROM ({low}) TO ({low + DAY})"
        )
    return name


async def _is_gone(connect: Connect, name: str) -> bool:
    async with _database(connect) as connection:
        return await connection.fetchval("SELECT to_regclass($1)", name) is None


async def _ledger(connect: Connect, compared: Compared) -> Counter[str]:
    """What is recorded of runs that were not called: at-most-once jobs whose beginning was not confirmed."""
    found = Counter({"not recorded": 0})
    async with _database(connect) as connection:
        for job, slot in compared.unsent:
            row = await connection.fetchrow(
                "SELECT status, error FROM history WHERE job_id = $1 AND ($2::bigint = 0 OR slot = $2)", job, slot
            )
            found["not recorded" if row is None else f"{row['status']}: {row['error']}"] += 1
    return found


def _collected(url: str) -> dict[str, int]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return dict(json.loads(answer.read()))


async def _metrics(server: Server) -> dict[str, float]:
    """Items for the collector that were dropped, and failovers that the node noticed."""
    _, raw = await (await wired(server.port)).ask(request("GET", "/metrics"))
    wanted = ("onthedot_otel_items_total", "onthedot_store_failovers_total")
    lines = [line.rsplit(" ", 1) for line in raw.decode().splitlines() if line.startswith(wanted)]
    return {name: float(value) for name, value in lines}


def _lateness(calls: list[Call], recoveries: list[Recovery]) -> dict[str, float]:
    """Outside of the failovers, from the slot to the receiver; what a failover costs stands in its own table."""
    away = [(each.fault.gone, each.fault.gone + (each.caught_up or 0.0)) for each in recoveries]
    late = [
        call.at * 1000 - call.slot
        for call in calls
        if not any(begin <= call.at <= end or begin <= call.slot / 1000 <= end for begin, end in away)
    ]
    return quantiles(late)


def _said(
    compared: Compared,
    load: Load,
    ledger: Counter[str],
    alerts: list[Alert],
    counts: dict[str, int],
    metrics: dict[str, float],
    places: Places,
    dropped: bool,
) -> list[list[object]]:
    told = Counter(f"{alert.event} {alert.condition}" for alert in alerts)
    return [
        ["runs due", compared.due],
        ["calls received", compared.calls],
        ["lost", len(compared.lost)],
        ["doubled, not explained by a failover", len(compared.doubled)],
        ["called, and not due", len(compared.strange)],
        ["repeated with the same webhook-id, explained by a failover", len(compared.repeated)],
        ["at-most-once: called twice", len(compared.twice)],
        ["at-most-once: not called", _listed(ledger) if compared.unsent else 0],
        ["creates that were asked again (503)", load.refused],
        ["alert messages", _listed(told)],
        ["OpenTelemetry items", _listed({name: n for name, n in counts.items() if name != "bytes"})],
        ["metrics", _listed({name: int(value) for name, value in metrics.items()})],
        ["RETENTION, s", places.retention],
        ["partition of a day long ago", "dropped" if dropped else "STILL THERE"],
    ]


def _listed(counts: dict[str, int] | Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


def _keep(home: Path, directory: Path) -> None:
    """For a closer look, however it ended: every call, and the server's log."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("calls.txt", "server.log"):
        if (home / name).exists():
            shutil.copy(home / name, directory)
