"""An asynchronous standby is promoted that lacks the primary's last moments: real servers, real replication."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest

from onthedot.cli import store_diagnosis
from onthedot.errors import NotFound, StoreUnavailable
from onthedot.store import Store, open_store
from onthedot.store.postgres.lineage import GAP
from onthedot.telemetry import Event, telemetry
from tests.services.missing import missing
from tests.services.postgres import PostgresMissing, PostgresServer, running_pair
from tests.services.waiting import until
from tests.store.given import create

Pair = tuple[PostgresServer, PostgresServer]


@pytest.fixture
def pair() -> Iterator[Pair]:
    try:
        with running_pair() as servers:
            yield servers
    except PostgresMissing as why:
        missing(why)


@pytest.fixture
def events() -> Iterator[list[Event]]:
    heard: list[Event] = []
    unsubscribe = telemetry.subscribe(heard.append)
    yield heard
    unsubscribe()


def address(pair: Pair) -> str:
    primary, standby = pair
    return f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres?timeout=5"


async def replicated(pair: Pair) -> None:
    primary, standby = pair
    (row,) = primary.fetch("SELECT pg_current_wal_lsn()::text AS at")

    def there() -> bool:
        return bool(standby.fetch(f"SELECT pg_last_wal_replay_lsn() >= '{row['at']}' AS there")[0]["there"])

    await until(there, "the standby has all of it")


async def promoted_without_the_last(pair: Pair, lost: Store) -> list[int]:
    """The ids of jobs that only the primary had, acknowledged while the standby was away."""
    primary, standby = pair
    await replicated(pair)
    standby.stop()
    gone = [(await create(lost, key=f"lost-{n}")).id for n in range(50)]
    primary.stop(immediate=True)
    standby.start()
    standby.execute("SELECT pg_promote()")
    return gone


async def created(store: Store, key: str) -> int:
    """As a client does: again, until there is a database that takes it."""
    async with asyncio.timeout(30):
        while True:
            try:
                return (await create(store, key=key)).id
            except StoreUnavailable:
                await asyncio.sleep(0)


async def test_no_number_is_given_twice(pair: Pair, events: list[Event]) -> None:
    store = await open_store(address(pair))
    other = await open_store(address(pair))
    try:
        kept = [(await create(store, key=f"kept-{n}")).id for n in range(3)]
        assert not [event for event in events if event.name == "store.failover"]
        gone = await promoted_without_the_last(pair, store)
        first = await created(store, "first")
        assert first > max(gone), "a job that was lost and a new one would be the same to a receiver"
        assert first >= max(kept) + GAP
        second = await created(other, "second")
        assert first < second < first + GAP / 2, "one gap, however many nodes find it out"
        for job_id in gone:
            with pytest.raises(NotFound):
                await store.get_job(1, job_id)
        (told,) = [event for event in events if event.name == "store.failover"]
        assert told.fields["before"].endswith("/1")
        assert told.fields["now"].endswith("/2")
        finding = await store_diagnosis._failover(store)
        assert finding is not None
        assert finding.state == "warning"
        assert "at-most-once" in str(finding.advice)
    finally:
        await store.close()
        await other.close()


async def test_a_process_that_starts_later_finds_it_out_too(pair: Pair, events: list[Event]) -> None:
    store = await open_store(address(pair))
    await create(store, key="kept")
    gone = await promoted_without_the_last(pair, store)
    await store.close()
    later = await open_store(address(pair))
    try:
        assert (await create(later, key="new")).id > max(gone)
        again = await open_store(address(pair))
        assert (await create(again, key="newer")).id < max(gone) + 1.5 * GAP
        await again.close()
        assert len([event for event in events if event.name == "store.failover"]) == 1
    finally:
        await later.close()


async def test_with_a_pooler_in_between(pair: Pair) -> None:
    store = await open_store(address(pair))
    pooled = await open_store(f"{address(pair)}&pooler=transaction")
    try:
        gone = await promoted_without_the_last(pair, store)
        assert await created(pooled, "new") > max(gone)
    finally:
        await store.close()
        await pooled.close()


async def test_the_standby_itself_is_passed_over(pair: Pair) -> None:
    primary, standby = pair
    url = f"postgresql://postgres@127.0.0.1:{standby.port},127.0.0.1:{primary.port}/postgres"
    store = await open_store(url)
    try:
        assert (await create(store, key="a")).version == 1
    finally:
        await store.close()


async def test_a_role_that_can_not_ask_works_all_the_same(postgres_url: str, postgres_server: PostgresServer) -> None:
    """Where the functions are not for everybody, nothing is noticed, and nothing fails."""
    owner = await asyncpg.connect(postgres_url)
    await owner.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    await owner.execute("CREATE ROLE limited LOGIN; CREATE SCHEMA limited AUTHORIZATION limited")
    try:
        for more in ("", "&pooler=transaction"):
            store = await open_store(f"{postgres_url.replace('postgres@', 'limited@')}?schema=limited{more}")
            assert await store.now() > 0
            await store.close()
        assert await owner.fetchval("SELECT count(*) FROM limited.lineage") == 0
    finally:
        await owner.execute("DROP OWNED BY limited; DROP ROLE limited")
        await owner.close()
