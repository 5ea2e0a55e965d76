"""What the doctor finds in a cluster, a disk, a clock: each state, each advice."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import pytest

from onthedot.cli import diagnosis, store_diagnosis
from onthedot.cli.findings import Finding
from onthedot.clock import SystemClock
from onthedot.errors import StoreUnavailable
from onthedot.model.destination import DestinationLoad
from onthedot.model.instant import format_instant
from onthedot.model.node import NodeView
from onthedot.settings import CertificateSetting, Settings
from onthedot.store import BacklogCount
from onthedot.targets import build_targets


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def node(name: str, state: str = "alive", roles: tuple[str, ...] = ("api", "executor")) -> NodeView:
    return NodeView(
        id=f"id-{name}",
        name=name,
        host=name,
        pid=7,
        version="0",
        roles=list(roles),
        offers=["webhook"],
        started_at="",
        beat_at="",
        state=state,
        leader=False,
        held=0,
        running=0,
        capacity=1,
        lateness_ms=None,
    )


class FakeStore:
    def __init__(self, nodes: list[NodeView], backlog: BacklogCount | None = None, apart: int = 0) -> None:
        self._nodes = nodes
        self._backlog = backlog or BacklogCount(due=0, running=0, oldest_ms=None, unoffered={})
        self._apart = apart
        self.told: dict[str, list[DestinationLoad]] = {}
        self.waiting_ms: int | None = None  # for a concurrency group
        self.notes_ms = 0  # the age of the oldest note

    async def count_waiting_for_groups(self) -> tuple[int, int | None]:
        return (0, None) if self.waiting_ms is None else (4, await self.now() - self.waiting_ms)

    async def count_old_notes(self, age_ms: int) -> tuple[int, int]:
        return (0, 0) if self.notes_ms <= age_ms else (3, self.notes_ms)

    async def destinations_of_nodes(self) -> dict[str, list[DestinationLoad]]:
        return self.told

    async def list_nodes(self) -> list[NodeView]:
        return self._nodes

    async def backlog(self) -> BacklogCount:
        return self._backlog

    async def now(self) -> int:
        return SystemClock().now_ms() + self._apart


async def cluster(*nodes: NodeView, **backlog: Any) -> dict[str, Finding]:
    waiting = BacklogCount(**{"due": 0, "running": 0, "oldest_ms": None, "unoffered": {}, **backlog})
    store: Any = FakeStore(list(nodes), waiting)
    return {finding.subject: finding async for finding in store_diagnosis._cluster(store)}


async def test_a_healthy_cluster():
    found = await cluster(node("a"), node("b"))
    assert found["nodes"].found == "2 alive: a, b"
    assert {finding.state for finding in found.values()} == {"ok"}


async def test_nobody_who_executes_is_a_warning():
    found = await cluster(node("a", roles=("api",)))
    assert found["nodes"].state == "warning"
    assert found["nodes"].advice == "start one with `onthedot serve`"


async def test_open_breakers_are_named():
    store: Any = FakeStore([node("a")], BacklogCount(due=9, running=0, oldest_ms=5, unoffered={}, waiting=7))
    store.told = {
        "n1": [
            DestinationLoad(requires="webhook@https://a.example", breaker="open", failures=12),
            DestinationLoad(requires="webhook@https://well.example", in_flight=3),
        ],
        "n2": [DestinationLoad(requires="webhook@#2/https://b.example", breaker="half_open", failures=10)],
    }
    found = {finding.subject: finding async for finding in store_diagnosis._cluster(store)}
    assert found["breakers"].state == "warning"
    assert found["breakers"].found == (
        "circuit breakers are open for 2 destinations: https://a.example, https://b.example; 7 runs wait"
    )


@pytest.mark.parametrize(("minutes", "warned"), [(None, False), (14, False), (16, True)])
async def test_a_long_wait_for_a_group_is_told(minutes: int | None, warned: bool):
    store: Any = FakeStore([node("a")])
    store.waiting_ms = None if minutes is None else minutes * 60_000
    found = {finding.subject: finding async for finding in store_diagnosis._cluster(store)}
    assert ("groups" in found) == warned
    if warned:
        assert found["groups"].found.startswith("4 runs wait for their concurrency group, the first for 16m")


async def test_notes_that_nobody_carries_out_are_told():
    store: Any = FakeStore([node("a")])
    store.notes_ms = 90_000
    found = {finding.subject: finding async for finding in store_diagnosis._cluster(store)}
    assert found["notes"].state == "warning"
    assert found["notes"].found.startswith(
        "what 3 ended runs cause (chained runs, alerts, pauses) is not carried out, "
    )
    since = format_instant(await store.now() - 90_000)[:16]
    assert f"the first since {since}" in found["notes"].found
    assert found["notes"].found.endswith("(1m 30s)")
    assert "note.failed" in (found["notes"].advice or "")
    store.notes_ms = 60_000
    assert "notes" not in {finding.subject async for finding in store_diagnosis._cluster(store)}


async def test_a_server_tells_of_notes_that_nobody_carries_out(postgres_url, launch):
    """One of a kind that only a newer version knows."""
    server = await launch("--store", postgres_url)
    assert "notes" not in {each.subject async for each in store_diagnosis._by_server(server.url, None)}
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(
        "INSERT INTO notes (kind, tenant, job_id, run_id, said, created_at) "
        "SELECT 'newer', 1, 1, '1-1', '{}', (extract(epoch FROM now()) * 1000)::bigint - 90000 "
        "FROM generate_series(1, 2)"
    )
    await connection.close()
    found = {each.subject: each async for each in store_diagnosis._by_server(server.url, None)}
    assert found["notes"].state == "warning"
    assert found["notes"].found.startswith(
        "what 2 ended runs cause (chained runs, alerts, pauses) is not carried out, "
    )


async def test_lost_nodes_are_named():
    found = await cluster(node("a"), node("b", state="lost"))
    assert found["lost"].state == "warning"
    assert "b (7)" in found["lost"].found


async def test_a_backlog_is_told_when_it_is_old():
    assert (await cluster(node("a"), due=5, oldest_ms=5_000))["backlog"].state == "ok"
    found = await cluster(node("a"), due=5, running=2, oldest_ms=120_000)
    assert found["backlog"].state == "warning"
    assert found["backlog"].found == "5 runs due, 2 running; the oldest has waited 2m"


@pytest.mark.parametrize(
    ("offer", "advice"),
    [
        ("function:reports.nightly", "FUNCTIONS=reports.nightly"),
        ("command:backup", "[commands.backup]"),
        ("webhook", "the executor role"),
    ],
)
async def test_what_no_node_offers_is_wrong_and_says_how_to_offer_it(offer, advice):
    found = await cluster(node("a"), unoffered={offer: 3})
    assert found["unoffered"].state == "wrong"
    assert f"3 due runs need {offer}" in found["unoffered"].found
    assert advice in (found["unoffered"].advice or "")


async def test_work_that_nobody_reaches():
    found = await cluster(node("a"), unreached={"container@abc": 2})
    assert found["unreached"].state == "wrong"
    assert found["unreached"].found == "2 runs go on at container@abc, which no live node reaches"


async def test_labels_that_no_node_has_are_wrong_and_say_which():
    found = await cluster(node("a"), unoffered={"webhook+eu,gpu": 3}, lacking={"webhook+eu,gpu": ("eu", "gpu")})
    assert found["labels"].state == "wrong"
    assert found["labels"].found == "3 due runs need webhook+eu,gpu, but no live node has the labels eu, gpu"
    assert "--labels eu,gpu" in (found["labels"].advice or "")
    assert "unoffered" not in found
    found = await cluster(node("a"), unoffered={"command:backup+gpu": 1})
    assert "[commands.backup]" in (found["unoffered"].advice or "")


@pytest.mark.parametrize(
    ("apart", "state", "word"), [(0, "ok", ""), (5_000, "warning", "ahead"), (-5_000, "warning", "behind")]
)
async def test_clocks_that_are_apart(apart, state, word):
    store: Any = FakeStore([], apart=apart)
    found = await store_diagnosis._clocks(store)
    assert found.state == state
    assert word in found.found


@pytest.mark.parametrize(
    ("ahead", "named"), [([], None), ([4, 7], "jobs 4, 7 were"), (list(range(11)), "8, 9, … were")]
)
async def test_jobs_that_stand_in_the_future_are_wrong(ahead, named):
    class Store:
        async def floors_ahead(self, limit):
            assert limit == 11
            return ahead

    store: Any = Store()
    found = [finding async for finding in store_diagnosis._floors(store)]
    assert [finding.state for finding in found] == (["wrong"] if ahead else [])
    assert not ahead or (named and named in found[0].found)


@pytest.mark.parametrize(("free", "state"), [(100 << 30, "ok"), (500 << 20, "warning"), (10 << 20, "wrong")])
def test_room_on_the_disk(monkeypatch, free, state):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(0, 0, free))
    found = diagnosis._disk(Settings())
    assert {finding.state for finding in found} == {state}
    assert len(found) == 2


def test_a_store_elsewhere_needs_no_disk_here(tmp_path):
    settings = Settings(store="postgresql://db/otd", logs_base_directory=tmp_path / "not" / "there")
    (found,) = diagnosis._disk(settings)
    assert found.state == "ok"
    assert "for logs" in found.found


def test_a_good_jobs_file_is_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("jobs.json").write_text('{"jobs": []}')
    (found,) = diagnosis._jobs_file(Settings())
    assert (found.state, found.found) == ("ok", "jobs.json: 0 jobs")


@pytest.mark.parametrize(
    ("error", "settings", "advice"),
    [
        (StoreUnavailable("x"), Settings(store="postgresql://db/otd"), "is PostgreSQL running"),
        (OSError("x"), Settings(), "check that this user can write"),
        (ValueError("x"), Settings(store="postgresql://db/otd"), "see the message"),
    ],
)
def test_advice_for_a_store_that_does_not_open(error, settings, advice):
    assert advice in store_diagnosis._advice_for(error, settings)


async def test_a_server_that_can_not_be_asked_is_a_warning(free_port):
    found = [finding async for finding in store_diagnosis._by_server(f"http://127.0.0.1:{free_port()}", None)]
    assert [finding.state for finding in found] == ["warning"]
    assert "--url" in (found[0].advice or "")


def test_fewer_descriptors_than_concurrency_is_told(monkeypatch):
    settings = Settings(concurrency=1000, function_processes=4)
    monkeypatch.setattr(diagnosis, "allowed", lambda: 1024)
    found = diagnosis._descriptors(settings)
    assert (found.state, found.subject) == ("warning", "descriptors")
    assert "608 concurrent webhooks, but CONCURRENCY is 1000" in found.found
    monkeypatch.setattr(diagnosis, "allowed", lambda: 65_536)
    assert diagnosis._descriptors(settings).state == "ok"


@pytest.mark.parametrize(
    ("answer", "subject", "found"),
    [
        ({"status": "ready"}, None, None),
        (
            {"status": "ready", "clock": "the clock was ahead; 3 jobs …"},
            "clock",
            "machine clock: the clock was ahead; 3 jobs …",
        ),
        (StoreUnavailable("not ready"), "server", "not ready: not ready"),
    ],
)
async def test_what_a_server_says_of_its_readiness(answer, subject, found):
    class Client:
        async def ready(self):
            if isinstance(answer, Exception):
                raise answer
            return answer

    client: Any = Client()
    said = [finding async for finding in store_diagnosis._readiness(client)]
    assert [(finding.subject, finding.found) for finding in said] == ([(subject, found)] if subject else [])


async def test_certificates_are_read_as_a_node_would_read_them(tmp_path):
    there = Path(__file__).parents[1] / "targets" / "certificates"
    settings = Settings(
        certificates={
            "good": CertificateSetting(ca=str(there / "authority.pem"), hosts=("a.example",)),
            "old": CertificateSetting(cert=str(there / "expired.pem")),
            "away": CertificateSetting(cert=str(tmp_path / "nowhere.pem")),
        }
    )
    told = [one for one in await build_targets(settings).diagnose() if one.subject == "certificate"]
    found = [("wrong" if one.advice and one.is_error else "ok", one.found) for one in told]
    assert [state for state, _ in found] == ["wrong", "ok", "wrong"]
    assert found[0][1].startswith("away: ")
    assert found[1][1] == "good for a.example"
    assert "expired on 2020-01-02" in found[2][1]
