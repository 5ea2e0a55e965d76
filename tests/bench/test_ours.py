"""Our own scenarios, tiny: they run, and count what they should."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from bench.ours.creating import BODY
from bench.ours.crowd import crowd
from bench.ours.listing import filters as listed_filters
from bench.ours.parts import spec
from bench.ours.past import OVERDUE, past
from bench.ours.wire import ClientRequest
from bench.services import receiver as running_receiver
from onthedot.api.http.paging import PAGING
from onthedot.api.routes.jobs import FILTERS
from onthedot.client import AsyncClient
from onthedot.errors import Unreachable
from tests.services.postgres import in_own_loop

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


def test_through_worker_processes(postgres_url: str):
    figures = play("drain_workers", store=postgres_url, n=300)
    assert figures["rate"] > 0
    assert figures["cpu_us_per_run"] > 0


def test_webhooks(postgres_url: str):
    with running_receiver() as there:
        assert play("drain_webhooks", store=postgres_url, n=300, echo=there.url)["rate"] > 0
        assert play("bare_webhooks", store=postgres_url, n=300, echo=there.url)["rate"] > 0


def test_a_drain_whose_runs_fail_has_no_figures(postgres_url: str):
    """They failed once for want of an import path, and the rate of failing was taken for that of running."""
    given = json.dumps({"store": postgres_url, "n": 5, "echo": "http://127.0.0.1:1/"})
    command = [sys.executable, "-m", "bench.ours", "drain_webhooks", given]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=55, check=False)
    assert done.returncode != 0
    assert "a run failed, which is not what is measured: can't connect" in done.stderr


def test_nothing_is_early(sqlite: str):
    late = play("lateness", store=sqlite, rate=50, seconds=1)["late_ms"]
    assert late["min"] >= 0
    assert late["p50"] <= late["p99"]


def test_the_machine_itself():
    late = play("bare_timer", store="", rate=100, seconds=1)["late_ms"]
    assert 0 <= late["min"] <= late["p50"] <= late["p99"]


def test_creating(postgres_url: str):
    assert play("create_one", store=postgres_url, n=20)["rate"] > 0
    assert play("create_bulk", store=postgres_url, n=200)["rate"] > 0
    assert play("single_commits", store=postgres_url, n=20)["rate"] > 0


async def test_creates_are_measured_with_what_the_client_sends():
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length: "))
        heard.set_result(head + await reader.readexactly(int(length.split()[1])))
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with AsyncClient(f"http://127.0.0.1:{port}", "otd_key", tries=1) as client:
            with pytest.raises(Unreachable):
                await client.create_job(spec(**BODY))
    sent = ClientRequest("/v1/jobs", spec(**BODY), "otd_key", port).make()
    key = re.compile(rb"idempotency-key: [0-9a-f-]{36}\r\n")
    assert len(key.findall(sent)) == 1
    assert key.sub(b"", sent) == key.sub(b"", await heard)


def test_creating_over_http(postgres_url: str):
    assert play("create_http_bare", store=postgres_url, n=64)["rate"] > 0  # first: the others close the server by a key
    assert play("create_http", store=postgres_url, n=64)["rate"] > 0
    assert play("create_http_bulk", store=postgres_url, n=320)["rate"] > 0


def test_a_seeded_database_drains_what_is_due_and_keeps_the_rest(postgres_url: str):
    play("seed", store=postgres_url, pending=6000)
    figures = play("drain_and_claim", store=postgres_url, n=200)
    assert figures["claims"] >= 2, "a hundred at a time"
    assert figures["bytes"]["wal"] > 0
    assert in_own_loop(lambda: pending_of(postgres_url)) == 6000
    assert "runs_free" in in_own_loop(lambda: indexes_of(postgres_url)), "they are back after the seeding"
    assert not in_own_loop(lambda: without_autovacuum(postgres_url)), "it is on again"


async def pending_of(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM runs WHERE state = 'pending'"))
    finally:
        await connection.close()


async def without_autovacuum(url: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        found = "SELECT relname FROM pg_class WHERE 'autovacuum_enabled=false' = ANY (reloptions)"
        return [row["relname"] for row in await connection.fetch(found)]
    finally:
        await connection.close()


async def indexes_of(url: str) -> set[str]:
    connection = await asyncpg.connect(url)
    try:
        return {row["indexname"] for row in await connection.fetch("SELECT indexname FROM pg_indexes")}
    finally:
        await connection.close()


def test_every_filter_of_the_list_is_asked(postgres_url: str):
    figures = play("listing", store=postgres_url, jobs=1000, times=2)
    filters = {param.name for param in FILTERS} - {param.name for param in PAGING}
    assert filters <= {name for asked in listed_filters().values() for name in asked}
    assert {row[0] for row in figures["table"]["rows"]} == set(listed_filters())
    assert any(row[1] == "deep" for row in figures["table"]["rows"])


def test_the_mix_counts_no_errors(postgres_url: str):
    figures = play("mix", store=postgres_url, jobs=200, seconds=1, most=100)
    assert figures["errors"] == []
    assert figures["at_100_ms"]["p50"] > 0


def test_a_short_soak_records_every_firing(postgres_url: str):
    with running_receiver() as there:
        figures = play("soak", store=postgres_url, seconds=1, rate=40, echo=there.url)
    assert figures["recorded_share"] == 1.0, figures["became"]
    series = figures["series"]
    assert len(series["second"]) >= 10
    assert series["wal_mb"] == sorted(series["wal_mb"])
    assert min(series["rss_mb"]) > 10


def test_the_next_minute_is_found_in_both_layouts(postgres_url: str):
    """The day is 14,400 runs, ten of them a minute."""
    figures = play("next_minute", store=postgres_url, pending=14_400, times=3)
    rows = {(row[0], row[1]): row[2:] for row in figures["table"]["rows"]}
    for layout in ("one table", "24 partitions"):
        assert rows["due in the next minute", layout][0] == 10
        assert rows["due in the next minute, without an index", layout][0] == 10
        assert rows["read of a claim, all of a minute", layout][0] == 10
        assert rows["claim of 100", layout][0] == 10
        assert rows["look before a claim", layout][0] == 1
    assert rows["due in the next minute", "one table"][-1] == "Index Scan using runs_free"
    assert rows["due in the next minute", "24 partitions"][-1] == "Index Scan: 1 of 24 partitions"
    assert rows["due in the next minute, without an index", "24 partitions"][-1] == "Seq Scan: 1 of 24 partitions"
    assert min(figures["bytes"].values()) > 0
    assert in_own_loop(lambda: pending_of(postgres_url)) == 14_400, "claims were undone"


def test_tenants_with_keys_get_answers_while_jobs_fire(postgres_url: str):
    with running_receiver() as there:
        given = {"tenants": 5, "owners": 20, "jobs": 40, "rate": 100, "firings": 20, "seconds": 1}
        figures = play("tenants", store=postgres_url, echo=there.url, **given)
    assert figures["first_errors"] == []
    assert figures["fired_share"] == 1.0
    rows = {row[0]: row for row in figures["table"]["rows"]}
    assert set(rows) == {"create", "get", "list by owner", "patch", "all requests", "firings (lateness)"}
    assert rows["all requests"][1] == 100
    assert rows["firings (lateness)"][1] == 20


def test_scripts_are_stored_once(postgres_url: str):
    figures = play("scripts", store=postgres_url, count=20, size=10_000, a_day=1_700_000, limit_gb=83.0)
    stored = figures["stores"]["directory"]
    assert 10_000 <= stored["disk"] < 20_000
    assert stored["wal"] > 0
    assert figures["again"] == 0
    assert figures["gb_a_day"] == pytest.approx(stored["disk"] * 1_700_000 / 1e9)


def test_open_dashboards(postgres_url: str):
    figures = play("dashboards", store=postgres_url, count=5, rate=20, seconds=2)
    assert figures["late_ms"]["p99"] > 0
    assert figures["calm_cpu_percent"] > 0


def test_a_bulk_pause_next_to_firings(postgres_url: str):
    figures = play("bulk_pause", store=postgres_url, jobs=300, rate=20, seconds=4, calm=2)
    assert figures["seconds"] > 0
    assert figures["to_calm"] > 0


async def test_a_past_that_every_page_shows(postgres_url: str):
    await past(postgres_url, await crowd(postgres_url, 400), 2000)
    connection = await asyncpg.connect(postgres_url)
    for table in (
        "history",
        "dead_letters",
        "job_stats",
        "noticed_jobs",
        "incidents",
        "audit_log",
        "operations",
        "rollups",
    ):
        assert await connection.fetchval(f"SELECT count(*) FROM {table}"), table
    overdue = "SELECT count(*) FROM runs WHERE slot < extract(epoch FROM now()) * 1000 AND id = job_id || '-' || slot"
    assert await connection.fetchval(overdue) == OVERDUE
    await connection.close()
