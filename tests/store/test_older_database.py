"""A database of the release before is migrated and goes on: nothing is lost, and slots follow each other.

`older/` holds what that release's own code wrote, on each database: 155 seconds in the life of one node, `n1`, which
was then gone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from onthedot.clock import FakeClock
from onthedot.errors import IdempotencyMismatch
from onthedot.model.run import ClaimedRun
from onthedot.store import Idempotency, JobFilter, Store, open_driver, open_store
from onthedot.store.driver import Driver, Transaction
from onthedot.store.migrate import known_migrations, migrate
from tests.store.conftest import START, Times
from tests.store.given import fetch
from tests.store.hands import Hands, every, node_info, spec

OLDER = Path(__file__).parent / "older"
KNOWN = 11  # migrations that the release had
DUMPED = START + 155_000
TABLES = (
    *("jobs", "job_tags", "job_stats", "runs", "run_params", "run_logs", "live_logs", "history", "dead_letters"),
    *("endings", "nodes", "idempotency", "tenants", "api_keys", "sessions"),
)
OFFERS = ["webhook", "function:reports", "command:backup"]
NOW = "(SELECT now_ms FROM test_clock)"

Tables = dict[str, list[dict[str, Any]]]


async def _tables(driver: Driver) -> Tables:
    async def body(tx: Transaction) -> Tables:
        found = {table: [dict(row) for row in await tx.sql(f"SELECT * FROM {table}")] for table in TABLES}
        return {table: sorted(rows, key=repr) for table, rows in found.items()}

    return await driver.read(body)


async def _load(driver: Driver) -> None:
    """On SQLite the dump has the tables, too; on PostgreSQL that release's migrations make them."""
    text = (OLDER / f"{driver.dialect}.sql").read_text()
    if driver.dialect == "postgres":
        await migrate(driver, known_migrations("postgres")[:KNOWN])
    else:
        text = text.replace("BEGIN TRANSACTION;", "").replace("COMMIT;", "")
    await driver.transact_slow(lambda tx: tx.script(text))


@pytest.fixture(params=["sqlite", "postgres"])
async def older(request: pytest.FixtureRequest, fake_clock: FakeClock) -> tuple[str, Tables]:
    """The address of such a database, and what is in it."""
    url = request.getfixturevalue(f"empty_{request.param}_url")
    if request.param == "postgres":
        connection = await asyncpg.connect(url)
        await connection.execute(f"CREATE TABLE test_clock AS SELECT {DUMPED}::bigint AS now_ms")
        await connection.close()
    fake_clock.step_wall(DUMPED - fake_clock.now_ms())
    driver = await open_driver(url, fake_clock, now=NOW)
    await _load(driver)
    before = await _tables(driver)
    await driver.close()
    return url, before


@pytest.fixture
async def store(older: tuple[str, Tables], fake_clock: FakeClock) -> AsyncIterator[Store]:
    opened = await open_store(older[0], fake_clock, now=NOW)
    yield opened
    await opened.close()


@pytest.fixture
async def times(store: Store, fake_clock: FakeClock) -> Times:
    times = Times(store, fake_clock)
    await times.set(DUMPED)
    return times


@pytest.fixture
async def hands(store: Store, times: Times) -> Hands:
    """A new node. The old one, which nobody hears of any more, is lost."""
    await store.register(node_info("n2"))
    (beat,) = await fetch(store, "SELECT beat FROM nodes WHERE id = 'n1'")
    assert await store.declare_lost("n1", beat["beat"])
    return Hands(store, "n2")


async def _claimed(hands: Hands) -> dict[str, list[ClaimedRun]]:
    runs: dict[str, list[ClaimedRun]] = {}
    for run in (await hands.claim(offers=OFFERS)).runs:
        runs.setdefault(str(run.spec.key), []).append(run)
    return runs


async def _job(hands: Hands, key: str) -> int:
    return (await hands.store.get_job_by_key(1, key)).id


async def test_nothing_is_lost(older: tuple[str, Tables], store: Store) -> None:
    after = await _tables(store.driver)
    for table, rows in older[1].items():
        assert rows, f"the dump has nothing in {table}"
        kept = [{name: row[name] for name in rows[0]} for row in after[table]]
        assert sorted(kept, key=repr) == rows, table


async def test_what_the_lost_node_had_goes_back_or_ends(hands: Hands) -> None:
    before = [row for row in await hands.live() if row["state"] == "running"]
    assert len(before) == 10
    assert await hands.store.reclaim() == len(before)
    await hands.check()
    once = [row["status"] for row in await hands.ledger(await _job(hands, "once")) if row["slot"] == START + 60_000]
    assert once == ["failed"], "at most once, and begun: nobody knows whether it was sent"
    (replaced,) = [row for row in await hands.ledger(await _job(hands, "replace")) if row["slot"] == START + 60_000]
    assert (replaced["status"], replaced["reason"]) == ("cancelled", "replaced")


async def test_it_goes_on(hands: Hands, times: Times) -> None:
    """Everything that was lost or waited fires, each job's slots follow each other, and nothing fires twice."""
    await hands.store.reclaim()
    fired: dict[str, list[int]] = {}
    for _ in range(40):
        for key, runs in (await _claimed(hands)).items():
            fired.setdefault(key, []).extend(run.slot for run in runs)
            await hands.finish(*runs)
            await hands.check()
        await times.advance(30_000)
    minutes = [START + 60_000 * n for n in range(2, 23)]
    assert sorted(fired["every"]) == minutes
    assert sorted(fired["skip"]) == [START + 60_000, *minutes[1:]], "the second was skipped then"
    assert sorted(fired["queue"]) == [START + 60_000, *minutes]
    assert sorted(fired["once"]) == minutes, "the first may have been sent, and is not sent again"
    assert sorted(fired["counted"]) == [START + 60_000, *[START + 60_000 * n for n in (2, 3, 4, 5)]]
    assert fired["delay"] == [START + 600_000]
    assert fired["retries"] == [START + 30_000]
    assert sorted(fired["filed"]) == [START + 120_000 * n for n in range(1, 12)]
    assert "paused" not in fired
    assert (await hands.store.get_job_by_key(1, "counted")).state == "ended"


async def test_runs_keep_their_own_params(hands: Hands) -> None:
    await hands.store.reclaim()
    (run,) = (await _claimed(hands))["params"]
    assert (run.kind, run.params, run.token, run.losses) == ("manual", {"a": 2}, 2, 1)


async def test_verbs_go_on(hands: Hands, times: Times) -> None:
    store = hands.store
    await store.reclaim()
    await store.resume_job(1, await _job(hands, "paused"))
    await store.update_job(1, await _job(hands, "every"), lambda _: spec(every(30_000), key="every"))
    await store.pause_job(1, await _job(hands, "queue"))
    await store.delete_job(1, await _job(hands, "filed"))
    await store.run_job(1, await _job(hands, "cron"))
    assert len(await store.redrive(1)) == 2, "the dead letter there was, and the one that nobody knows of"
    await hands.check()
    await times.advance(120_000)
    claimed = await _claimed(hands)
    assert {"paused", "every", "cron", "dead"} <= claimed.keys()
    assert not {"queue", "filed", "deleted"} & claimed.keys()
    assert [run.kind for run in claimed["cron"]] == ["manual"]
    await hands.finish(*(run for runs in claimed.values() for run in runs))
    await hands.check()


async def test_who_asked_and_who_may_ask_are_known(hands: Hands) -> None:
    store = hands.store
    found = await store.earlier_jobs(1, [Idempotency("make-far", "v1:abc")])
    assert found["make-far"].key == "far"
    with pytest.raises(IdempotencyMismatch):
        await store.refuse_other_bodies(1, [Idempotency("run-params", "v1:other")])
    key = await store.find_key("hash-of-a-key")
    assert key is not None
    assert (key.name, key.scope, key.tenant) == ("ci", "write", 1)
    assert await store.find_session("hash-of-a-session") == key


async def test_what_people_see_is_there(hands: Hands) -> None:
    store = hands.store
    ended = (await store.list_jobs(1, JobFilter(status="ended"))).items
    assert {job.key for job in ended} == {"dead", "settled", "unsettled", "last"}
    assert await store.close_one_offs() == 1
    assert {job.key for job in (await store.list_jobs(1, JobFilter(status="ended"))).items} == {
        job.key for job in ended
    }
    (letter,) = (await store.list_dead(1)).items
    assert await store.run_logs(1, letter.id) == "printed\n"
    (paused,) = (await store.list_jobs(1, JobFilter(status="paused"))).items
    assert paused.pause is not None
    assert paused.pause.note == "holiday"
    (tagged,) = (await store.list_jobs(1, JobFilter(tag="b", owner="ann"))).items
    assert tagged.key == "cron"
