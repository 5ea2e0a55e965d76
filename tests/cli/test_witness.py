"""The witness against real stores and a real server: planted mistakes, silence, and a store that is away."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from onthedot.model.node import NodeInfo
from onthedot.store import open_store
from onthedot.witness.looking import WitnessFinding
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


def test_once_without_a_store(cli, tmp_path):
    seen = cli("witness", "--once", "--store", f"sqlite:///{tmp_path}/none.db")
    assert (seen.code, seen.out.startswith("blind: the store can't be read")) == (1, True)
    assert not (tmp_path / "none.db").exists()


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
    told = tmp_path / "told.jsonl"
    witness = NodeProcess(
        "witness",
        "--every",
        "1s",
        "--store",
        f"sqlite:///{database}",
        "--alert-command",
        f"cat >> {told}",
        "--json",
        directory=tmp_path,
        port=free_port(),
        env={"ONTHEDOT_WITNESS_PING_URL": f"http://127.0.0.1:{receiver.server_port}/well"},
    )
    try:
        await until(lambda: pings, "the ping of a witness that finds all well")
        assert not told.exists()
        node.kill()
        await until(lambda: told.exists() and "no node is alive" in told.read_text(), "the alert of silence", 60)
        assert len(pings) == 1
        database.rename(tmp_path / "away.db")
        (tmp_path / "onthedot.db-wal").rename(tmp_path / "away.db-wal")
        await until(lambda: "can't look" in witness.output(), "a look that fails", 30)
        (tmp_path / "away.db").rename(database)
        (tmp_path / "away.db-wal").rename(tmp_path / "onthedot.db-wal")
        await until(lambda: "blind from" in told.read_text(), "the interval in which it could not look", 30)
    finally:
        witness.kill()
        receiver.shutdown()
        receiver.server_close()


def test_blind_from_a_to_b():
    watch = Watch(now=1_700_000_000_000)
    now = watch.looked_at
    assert watch.saw_nothing(now + 1000, "away") == []
    (alert,) = watch.saw_nothing(now + BLIND_MS, "away")
    assert (alert.event, alert.text) == ("found", "blind since 2023-11-14T22:13:20.000Z: away")
    assert watch.saw_nothing(now + BLIND_MS + 1000, "away") == []
    assert not watch.well
    (back,) = watch.saw(now + 2 * BLIND_MS, ("silent",), [])
    assert back.text == "blind from 2023-11-14T22:13:20.000Z to 2023-11-14T22:14:50.000Z"
    assert watch.well


def test_what_lasts_is_told_again_and_what_ends_is_told_once():
    watch, silent = Watch(now=0), [WitnessFinding(kind="silent", text="nobody")]
    assert [m.event for m in watch.saw(1, ("silent",), silent)] == ["found"]
    assert watch.saw(2, ("silent",), silent) == []
    assert [m.event for m in watch.saw(1 + REPEAT_MS, ("silent",), silent)] == ["still"]
    assert watch.saw(2 + REPEAT_MS, ("missing",), []) == []
    assert [m.event for m in watch.saw(3 + REPEAT_MS, ("silent",), [])] == ["recovered"]
    assert watch.saw(4 + REPEAT_MS, ("silent",), []) == []
