"""The witness against real stores and a real server: planted mistakes, silence, and a store that is away."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from onthedot.channels.channel import NotDelivered
from onthedot.channels.message import AlertMessage
from onthedot.errors import StoreUnavailable
from onthedot.model.node import NodeInfo
from onthedot.store import open_store
from onthedot.witness import looking, process
from onthedot.witness.looking import SlotsSeen, WitnessFinding
from onthedot.witness.watching import BLIND_MS, REPEAT_MS, Watch
from tests.services.process import NodeProcess
from tests.services.waiting import until
from tests.store.given import create, execute

MINUTE = 60_000


async def planted(url: str, *, missing: bool, twice: bool) -> int:
    """A job of ten minutes ago that fired each minute; a node that lives."""
    store = await open_store(url)
    job = await create(store, key="each-minute", schedule={"every": "1m"})
    now = await store.now()
    born = now - 10 * MINUTE - 5000
    await execute(store, f"UPDATE jobs SET created_at = {born}, updated_at = {born}, anchor_at = {born}")
    slots = [born + MINUTE * number for number in range(1, 11)]
    rows = [(f"{job.id}-{slot}", slot) for slot in slots if not (missing and slot == slots[4])]
    rows += [(f"{job.id}-{slots[6]}-x", slots[6])] if twice else []
    for run_id, slot in rows:
        await execute(
            store,
            "INSERT INTO history (id, tenant, job_id, slot, kind, due_at, status, finished_at)"
            f" VALUES ('{run_id}', 1, {job.id}, {slot}, 'scheduled', {slot}, 'done', {slot})",
        )
    following = slots[-1] + MINUTE
    await execute(store, f"UPDATE runs SET slot = {following}, due_at = {following}, ready_at = {following}")
    await store.register(
        NodeInfo(id="n1", name="n", host="h", pid=1, version="0", level=1, roles=[], offers=["webhook"], capacity=1)
    )
    await store.close()
    return slots[4]


@pytest.mark.parametrize(("missing", "twice"), [(False, False), (True, True)])
async def test_planted_mistakes_are_found(cli, store_url, missing, twice):
    await planted(store_url, missing=missing, twice=twice)
    seen = await asyncio.to_thread(cli, "witness", "--once", "--json", "--store", store_url)
    assert [finding["kind"] for finding in seen.json["findings"]] == ["missing", "twice"] * missing
    assert seen.json["slots"]["expected"] == 10
    assert (seen.code, seen.json["ok"]) == (int(missing), not missing)
    if missing:
        assert "each-minute" in seen.json["findings"][0]["text"]


async def test_many_missing_slots_hide_none_that_is_there_twice(cli, store_url, monkeypatch):
    monkeypatch.setattr("onthedot.store.cluster.proofs.MOST_NAMED", 2)
    await planted(store_url, missing=True, twice=True)
    store = await open_store(store_url)
    await execute(store, f"DELETE FROM history WHERE slot < {await store.now() - 6 * MINUTE}")
    await store.close()
    seen = await asyncio.to_thread(cli, "witness", "--once", "--json", "--store", store_url)
    kinds = [(finding["kind"], finding["number"]) for finding in seen.json["findings"]]
    assert kinds == [("missing", 1), ("missing", 1), ("missing", 3), ("twice", 1)]
    assert seen.json["findings"][2]["text"] == "3 more slots have no entry"


async def test_nodes_that_start_with_the_witness_are_waited_for(store, monkeypatch):
    witnessed = looking.WitnessedStore(store.driver)
    assert [finding.kind for finding in await witnessed.alive(MINUTE)] == ["silent"]
    assert await witnessed.alive(MINUTE, patient=True) == []
    monkeypatch.setattr(looking, "SILENT", 0)  # as if it had looked for that long
    assert [finding.kind for finding in await witnessed.alive(MINUTE, patient=True)] == ["silent"]


def test_what_one_finding_tells_of_is_counted():
    watch = Watch(0, ("missing",))
    found = [WitnessFinding(kind="missing", text="slot x"), WitnessFinding(kind="missing", text="41 more", number=41)]
    (message,) = watch.saw(1, found)
    assert (message.text, watch.found) == ("slot x (and 41 more)", {"missing": 42})


def test_once_without_a_store(cli, tmp_path):
    seen = cli("witness", "--once", "--store", f"sqlite:///{tmp_path}/none.db")
    assert (seen.code, seen.out.startswith("blind: the store can't be read")) == (1, True)
    assert not (tmp_path / "none.db").exists()


def test_a_database_without_tables_can_not_be_read(cli, empty_postgres_url):
    seen = cli("witness", "--once", "--json", "--store", empty_postgres_url)
    why = "the store can't be read: the store has pending migrations: run `onthedot migrate`, or start a node"
    assert (seen.code, seen.json["findings"][0]["kind"], seen.json["findings"][0]["text"]) == (1, "blind", why)


def test_a_file_without_tables_can_not_be_read(cli, tmp_path):
    sqlite3.connect(tmp_path / "empty.db").close()
    seen = cli("witness", "--once", "--store", f"sqlite:///{tmp_path}/empty.db")
    assert (seen.code, seen.out.startswith("blind: the store can't be read")) == (1, True)


async def test_silence_is_heard_and_blindness_is_told(launch, tmp_path, free_port):
    pings = []

    class Receiver(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            pings.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    database = tmp_path / "onthedot.db"
    node = await launch("--store", f"sqlite:///{database}")
    told, port = tmp_path / "told.jsonl", free_port()
    witness = NodeProcess(
        "witness",
        "--every",
        "1s",
        "--store",
        f"sqlite:///{database}",
        "--alert-command",
        f"cat >> {told}",
        "--json",
        "--port",
        str(port),
        directory=tmp_path,
        port=port,
        env={"ONTHEDOT_WITNESS_PING_URL": f"http://127.0.0.1:{receiver.server_port}/well"},
    )
    try:
        await until(lambda: pings, "the ping of a witness that finds all well")
        assert not told.exists()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            health = client.get("/healthz")
            assert (health.status_code, health.json()["status"], health.json()["blind_since"]) == (200, "ok", None)
            assert set(health.json()["findings"].values()) == {0}
            assert 'onthedot_witness_looks_total{look="alive",result="ok"}' in client.get("/metrics").text
            assert 'onthedot_witness_pings_total{result="ok"} 1.0' in client.get("/metrics").text
            assert client.post("/metrics").status_code == 405
            assert client.get("/v1/jobs").status_code == 404
        node.kill()
        killed = time.monotonic()
        await until(lambda: told.exists() and "no node is alive" in told.read_text(), "the alert of silence", 60)
        print(f"the whole cluster was killed: told after {time.monotonic() - killed:.1f} s")
        assert len(pings) == 1
        metrics = httpx.get(f"http://127.0.0.1:{port}/metrics").text
        assert 'onthedot_witness_findings{kind="silent"} 1.0' in metrics
        database.rename(tmp_path / "away.db")
        (tmp_path / "onthedot.db-wal").rename(tmp_path / "away.db-wal")
        await until(lambda: "witness.blind" in witness.output(), "a look that fails", 30)
        assert httpx.get(f"http://127.0.0.1:{port}/healthz").json()["blind_since"] is not None
        (tmp_path / "away.db").rename(database)
        (tmp_path / "away.db-wal").rename(tmp_path / "onthedot.db-wal")
        await until(lambda: "blind from" in told.read_text(), "the interval in which it could not look", 30)
        assert await witness.stop() == 0
    finally:
        witness.kill()
        receiver.shutdown()
        receiver.server_close()


def test_blind_from_a_to_b():
    watch = Watch(1_700_000_000_000, ("silent",))
    now = watch.looked_at
    assert watch.saw_nothing(now + 1000, "away") == []
    (alert,) = watch.saw_nothing(now + BLIND_MS, "away")
    assert (alert.event, alert.text) == ("found", "blind since 2023-11-14T22:13:20.000Z: away")
    assert watch.saw_nothing(now + BLIND_MS + 1000, "away") == []
    assert not watch.well
    (back,) = watch.saw(now + 2 * BLIND_MS, [])
    assert back.text == "blind from 2023-11-14T22:13:20.000Z to 2023-11-14T22:14:50.000Z"
    assert watch.well


def test_what_lasts_is_told_again_and_what_ends_is_told_once():
    watch, silent = Watch(0, ("silent", "standing")), [WitnessFinding(kind="silent", text="nobody")]
    assert [m.event for m in watch.saw(1, silent)] == ["found"]
    assert watch.found == {"silent": 1, "standing": 0}
    assert watch.saw(2, silent) == []
    assert [m.event for m in watch.saw(1 + REPEAT_MS, silent)] == ["still"]
    assert [m.event for m in watch.saw(3 + REPEAT_MS, [])] == ["recovered"]
    assert watch.saw(4 + REPEAT_MS, []) == []


def test_due_runs_go_on_standing_while_nobody_is_alive():
    watch = Watch(0, ("silent", "standing"))
    silent, standing = (WitnessFinding(kind=kind, text=kind) for kind in ("silent", "standing"))
    looks = [[standing], [silent], [standing], [silent], []]
    told = [[(m.event, m.kind) for m in watch.saw(5_000 * n, found)] for n, found in enumerate(looks, 1)]
    assert told == [
        [("found", "standing")],
        [("found", "silent")],
        [("recovered", "silent")],
        [("found", "silent")],
        [("recovered", "silent"), ("recovered", "standing")],
    ]
    watch.saw(30_000, [standing])
    watch.saw(35_000, [silent])
    assert watch.found == {"silent": 1, "standing": 1}, "the metric does not say that they were started"


def test_a_look_that_failed_once_is_told_only_where_that_is_wanted():
    watch = Watch(0, ("missing",), blind="slots could not be checked", brief=False)
    assert watch.saw_nothing(1000, "away") == []
    assert watch.saw(2000, []) == []
    assert len(watch.saw_nothing(2000 + BLIND_MS, "away")) == 1
    (back,) = watch.saw(3000 + BLIND_MS, [])
    assert back.text.startswith("slots could not be checked from ")


class _Seen:
    """What the looks of a witness are given, as a test decides."""

    def __init__(self) -> None:
        self.found: list[WitnessFinding] = []
        self.away = False
        self.has_just_come_back = False
        self.slots_answer = asyncio.Event()

    async def open(self, url: str) -> _Seen:
        return self

    async def alive(self, late: int, *, patient: bool) -> list[WitnessFinding]:
        if self.away:
            raise StoreUnavailable("away")
        return [] if patient and self.has_just_come_back else self.found

    async def slots(self, reach: int) -> tuple[SlotsSeen, list[WitnessFinding]]:
        await self.slots_answer.wait()
        text = "the store has pending migrations"
        none = SlotsSeen(since=0, until=0, jobs=0, expected=0, decided=0, unchecked_jobs=0)
        return none, [WitnessFinding(kind="blind", text=text)]

    async def close(self) -> None:
        pass


class _Heard:
    """A channel that refuses as often as a test says."""

    kind, place = "test", "here"

    def __init__(self) -> None:
        self.refuse = 0
        self.heard: list[AlertMessage] = []

    async def send(self, message: AlertMessage) -> None:
        if self.refuse:
            self.refuse -= 1
            raise NotDelivered("not now")
        self.heard.append(message)


@pytest.fixture
async def watched(monkeypatch, fake_clock):
    """A witness on a clock that is turned by hand: what it is given, who hears it, its pings, and itself."""
    seen, channel, pings = _Seen(), _Heard(), []

    async def ping(url: str) -> bool:
        pings.append(fake_clock.monotonic())
        return True

    monkeypatch.setattr(process, "open_witnessed", seen.open)
    monkeypatch.setattr(process, "ping", ping)
    order = process.WitnessOrder(store="x", every=30_000, reach=1, late=1, ping_url="http://127.0.0.1/")
    witness = process.Witness(order, [channel], fake_clock, lambda message: None)
    running = asyncio.create_task(witness.run())
    yield seen, channel, pings, witness
    running.cancel()
    await asyncio.wait([running])


async def test_a_ping_each_minute_while_all_is_well_and_none_else(watched, fake_clock):
    seen, _, pings, _ = watched
    for _ in range(200):
        await fake_clock.advance(1)
    assert [round(at) for at in pings] == [0, 60, 120, 180]
    seen.found = [WitnessFinding(kind="silent", text="nobody")]
    for _ in range(200):
        await fake_clock.advance(1)
    assert len(pings) == 4
    seen.found = []
    for _ in range(65):
        await fake_clock.advance(1)
    assert len(pings) == 5


async def test_a_look_at_all_slots_that_takes_long_delays_no_alert_of_silence(watched, fake_clock):
    """The look at the slots never ends here."""
    seen, channel, _, _ = watched
    await fake_clock.advance(100)
    seen.found = [WitnessFinding(kind="silent", text="nobody")]
    await fake_clock.advance(5.1)
    assert [message.condition for message in channel.heard] == ["silent"]


async def test_a_silence_is_not_over_because_the_database_was_away(watched, fake_clock):
    seen, channel, _, _ = watched
    seen.found = [WitnessFinding(kind="silent", text="nobody")]
    await fake_clock.advance(6)
    seen.away = True
    await fake_clock.advance(20)
    seen.away, seen.has_just_come_back = False, True
    await fake_clock.advance(10)
    assert [(message.event, message.condition) for message in channel.heard] == [
        ("found", "silent"),
        ("found", "blind"),
    ]


async def test_nodes_that_come_back_with_the_database_are_waited_for(watched, fake_clock):
    seen, channel, _, _ = watched
    await fake_clock.advance(6)
    seen.away, seen.found = True, [WitnessFinding(kind="silent", text="nobody")]
    await fake_clock.advance(20)
    seen.away, seen.has_just_come_back = False, True
    await fake_clock.advance(10)
    assert [message.condition for message in channel.heard] == ["blind"]
    seen.has_just_come_back = False
    await fake_clock.advance(6)
    assert [message.condition for message in channel.heard] == ["blind", "silent"]


async def test_what_a_channel_refuses_is_sent_again(watched, fake_clock):
    seen, channel, _, witness = watched
    channel.refuse = 2
    seen.found = [WitnessFinding(kind="silent", text="nobody")]
    await fake_clock.advance(15)
    assert channel.heard == []
    await fake_clock.advance(20)
    assert [message.text for message in channel.heard] == ["nobody"]
    assert b'onthedot_witness_messages_total{result="ok"} 1.0' in witness.metrics.text()


async def test_slots_that_can_not_be_checked_are_told(watched, fake_clock):
    seen, channel, pings, witness = watched
    seen.slots_answer.set()
    for _ in range(100):
        await fake_clock.advance(1)
    (message,) = channel.heard
    assert message.text.startswith("slots could not be checked since ")
    assert message.text.endswith("the store has pending migrations")
    assert len(pings) <= 1
    assert witness.health().status == "ok"
