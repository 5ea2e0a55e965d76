"""The database's own diary, on both stores: what was claimed, recorded and declared lost, and by whom."""

from __future__ import annotations

import contextlib
import sqlite3

import asyncpg

from onthedot.store import Store, open_store
from proof.chaos.clock import TrueTime
from proof.chaos.diary import READ, Note, events_of, pids_of, postgres_diary, sqlite_diary, timed
from proof.checker.events import Claimed, Lost, Recorded
from tests.store.hands import Hands, at, node_info


async def _install(url: str) -> Store:
    await (await open_store(url)).close()
    if url.startswith("sqlite"):
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.executescript(sqlite_diary())
    else:
        session = await asyncpg.connect(url)
        await session.execute(postgres_diary())
        await session.close()
    return await open_store(url)


async def _notes(hands: Hands) -> list[Note]:
    return [Note.of(row) for row in await hands.sql(READ)]


async def test_claims_records_and_losses_are_written_down(store_url: str) -> None:
    time = TrueTime()
    store = await _install(store_url)
    hands = Hands(store)
    try:
        await store.register(node_info("n1", pid=41))
        await store.register(node_info("n2", pid=42))
        now = await store.now()
        first, second = [await hands.job(at(now + 1000 + n)) for n in (0, 1)]
        runs = {run.job_id: run for run in (await hands.claim()).runs}
        await hands.finish(runs[first])
        await store.declare_lost("n1", 0)
        await store.reclaim()
        (again,) = (await Hands(store, "n2").claim()).runs
        notes = await _notes(hands)
    finally:
        await store.close()
    assert pids_of(notes) == {41: ["n1"], 42: ["n2"]}
    events = list(events_of(timed(notes, time), time))
    assert [(e.node, e.run, e.token) for e in events if isinstance(e, Claimed)] == [
        ("n1", runs[first].id, 1),
        ("n1", runs[second].id, 1),
        ("n2", again.id, 2),
    ]
    assert [(e.node, e.run, e.token) for e in events if isinstance(e, Recorded)] == [("n1", runs[first].id, 1)]
    (lost,) = [e for e in events if isinstance(e, Lost)]
    assert lost.node == "n1"
    assert 0 <= lost.silent < 60_000
    ats = [event.at for event in events]
    assert ats == sorted(ats)
    assert ats[0] > 0
    assert ats[-1] <= time.now + 1000
