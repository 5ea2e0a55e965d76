"""PostgreSQL: trouble told apart from mistakes, hints that find their way back, poolers."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from onthedot.errors import SettingsError, StoreError, StoreUnavailable, StoreUnsafe
from onthedot.store import JobFilter, Store, open_store
from onthedot.store.driver import HINTS, Collision, Transaction
from onthedot.store.postgres.address import parse_address
from onthedot.store.postgres.driver import PostgresDriver
from onthedot.store.postgres.transaction import PostgresTransaction
from tests.services.ports import free_port
from tests.services.postgres import PostgresServer
from tests.store.given import create, new
from tests.store.hands import FAILED, OK, REFUSED, Hands, every, spec


async def reloaded(server: PostgresServer, fsync: str) -> None:
    """The server reads its settings again; new connections have them from then on."""
    server.execute("SELECT pg_reload_conf()")
    async with asyncio.timeout(20):
        while True:
            connection = await asyncpg.connect(server.url())
            found = await connection.fetchval("SHOW fsync")
            await connection.close()
            if found == fsync:
                return


class TestArrays:
    async def test_no_connection_asks_what_they_are(self, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """It fails if asyncpg closes the door that we take, or if a statement takes an array of another kind."""
        monkeypatch.setattr(asyncpg.Connection, "_introspect_types", _asked)
        store = await open_store(postgres_url)
        try:
            hands = Hands(store)
            await hands.create(*(spec(every(1000)) for _ in range(3)), spec())
            for outcome in (OK, FAILED, REFUSED):
                await hands.sql("UPDATE runs SET ready_at = 1")
                runs = (await hands.claim()).runs
                assert runs
                await hands.finish(*runs, outcome=outcome)
            await store.close_one_offs()
            given = [1, None], [True, None], ["x", None]
            (answer,) = await store.driver.read(
                lambda tx: tx.sql("SELECT $1::bigint[], $2::boolean[], $3::text[]", *given)
            )
            assert (*answer,) == given
        finally:
            await store.close()


async def _asked(connection: object, types: object, timeout: object) -> None:
    raise AssertionError(f"asked the server what {types} are")


async def test_a_connection_lost_while_it_is_set_up_is_trouble_not_a_mistake(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was taken for a mistake of ours, and the node stopped."""
    store = await open_store(postgres_url)
    try:
        await store.driver._connections._pool.expire_connections()  # type: ignore[attr-defined]  # the next one is a new one
        store.driver._connections._drop_all(store.driver._connections._kept[-1])  # type: ignore[attr-defined]
        monkeypatch.setattr("onthedot.store.postgres.driver.tell_arrays", _hang_up)
        with pytest.raises(StoreUnavailable, match="lost during setup"):
            await store.list_jobs(1, JobFilter())
        monkeypatch.undo()
        assert (await store.list_jobs(1, JobFilter())).items == []
    finally:
        await store.close()


async def _hang_up(connection: Any) -> None:
    connection._transport.abort()
    while not connection.is_closed():
        await asyncio.sleep(0)


class TestAddress:
    def test_our_options_are_taken_out(self) -> None:
        address = parse_address(
            "postgres://u:p@h:1/d?pooler=transaction&hints=off&unsafe=allow&pool=3&timeout=2.5&sslmode=require"
        )
        assert address.dsn == "postgresql://u:p@h:1/d?sslmode=require"
        assert (address.pooled, address.unsafe, address.pool, address.timeout) == (True, True, 3, 2.5)
        assert address.shown() == "h:1/d"
        plain = parse_address("postgresql://h/d")
        assert (plain.pooled, plain.unsafe, plain.pool) == (False, False, 10)
        assert (plain.hints, address.hints) == (True, False)

    @pytest.mark.parametrize(
        "option", ["pooler=session", "hints=on", "unsafe=yes", "pool=1", "pool=x", "timeout=0", "timeout=nan"]
    )
    def test_what_cant_be(self, option: str) -> None:
        with pytest.raises(SettingsError, match=option.split("=")[0]):
            parse_address(f"postgresql://h/d?{option}")


class TestOpening:
    async def test_nobody_there(self) -> None:
        with pytest.raises(StoreUnavailable, match="can't reach"):
            await open_store(f"postgresql://postgres@127.0.0.1:{free_port()}/x?timeout=2")

    async def test_no_such_database(self, postgres_server: PostgresServer) -> None:
        with pytest.raises(StoreError, match="nowhere") as caught:
            await open_store(postgres_server.url("nowhere"))
        assert not isinstance(caught.value, StoreUnavailable)

    @pytest.mark.parametrize("setting", ["synchronous_commit"])
    async def test_unsafe_settings_are_refused(self, postgres_url: str, setting: str) -> None:
        with pytest.raises(StoreUnsafe, match=f"{setting} off"):
            await open_store(f"{postgres_url}?{setting}=off")
        store = await open_store(f"{postgres_url}?{setting}=off&unsafe=allow")
        assert await store.now() > 0
        await store.close()

    async def test_a_server_that_does_not_sync_is_refused(
        self, postgres_server: PostgresServer, postgres_url: str
    ) -> None:
        postgres_server.execute("ALTER SYSTEM SET fsync = off")
        try:
            await reloaded(postgres_server, "off")
            with pytest.raises(StoreUnsafe, match="fsync off"):
                await open_store(postgres_url)
            store = await open_store(f"{postgres_url}?unsafe=allow")
            await store.close()
        finally:
            postgres_server.execute("ALTER SYSTEM RESET fsync")
            await reloaded(postgres_server, "on")
        await (await open_store(postgres_url)).close()

    async def test_time_is_the_databases(self, postgres_url: str) -> None:
        store = await open_store(postgres_url)
        connection = await asyncpg.connect(postgres_url)
        before = await connection.fetchval("SELECT extract(epoch from clock_timestamp()) * 1000")
        now = await store.now()
        after = await connection.fetchval("SELECT extract(epoch from clock_timestamp()) * 1000")
        assert int(before) <= now <= after, "rounded down: never ahead of the truth"
        await connection.close()
        await store.close()


@pytest.fixture
async def opened(postgres_url: str):
    store = await open_store(f"{postgres_url}?timeout=1")
    yield store
    await store.close()


async def test_a_mistake_stays_a_mistake(opened: Store) -> None:
    async def wrong_sql(tx: Transaction) -> None:
        await tx.sql("SELEC 1")

    async def wrong_arguments(tx: Transaction) -> None:
        await tx.sql("SELECT $1::bigint", 1, 2)

    async def wrong_type(tx: Transaction) -> None:
        await tx.sql("SELECT $1::bigint", "x")

    for body, kind in (
        (wrong_sql, asyncpg.PostgresSyntaxError),
        (wrong_arguments, asyncpg.InterfaceError),
        (wrong_type, asyncpg.DataError),
    ):
        with pytest.raises(kind):
            await opened.driver.transact_slow(body)
        with pytest.raises(kind):
            await opened.driver.read(body)
    assert await opened.now() > 0


async def test_a_killed_connection_is_trouble_and_the_next_call_works(opened: Store) -> None:
    async def suicide(tx: Transaction) -> None:
        await tx.sql("SELECT pg_terminate_backend(pg_backend_pid())")

    for run in (opened.driver.transact_slow, opened.driver.read):
        with pytest.raises(StoreUnavailable):
            await run(suicide)
        assert await opened.now() > 0


async def test_who_is_cancelled_on_a_broken_connection_hears_of_the_cancellation(opened: Store) -> None:
    """Not of the rollback that failed: a loop that is told to end would take that for trouble, and go on."""
    broken = asyncio.Event()

    async def hang(tx: Transaction) -> None:
        assert isinstance(tx, PostgresTransaction)
        tx.connection.terminate()
        broken.set()
        await asyncio.Event().wait()

    call = asyncio.ensure_future(opened.driver.transact_slow(hang))
    await broken.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await opened.now() > 0


async def test_every_call_has_a_deadline(opened: Store) -> None:
    async def slow(tx: Transaction) -> None:
        await tx.sql("SELECT pg_sleep(30)")

    with pytest.raises(StoreUnavailable):
        await opened.driver.transact_slow(slow)
    assert await opened.now() > 0


async def test_waiting_for_a_lock_has_a_deadline_too(opened: Store, postgres_url: str) -> None:
    job = await create(opened)
    connection = await asyncpg.connect(postgres_url)
    async with connection.transaction():
        await connection.execute("SELECT 1 FROM jobs WHERE id = $1 FOR UPDATE", job.id)
        with pytest.raises(StoreUnavailable):
            await opened.pause_job(1, job.id)
    await connection.close()
    assert (await opened.pause_job(1, job.id)).state == "paused"


async def test_a_restart_of_the_database(postgres_server: PostgresServer, postgres_url: str) -> None:
    store = await open_store(f"{postgres_url}?timeout=5")
    job = await create(store, key="kept")
    postgres_server.stop(immediate=True)
    with pytest.raises(StoreUnavailable):
        await store.now()
    with pytest.raises(StoreUnavailable):
        await create(store, key="lost")
    postgres_server.start()
    assert await store.get_job_by_key(1, "kept") == job
    assert (await create(store, key="lost")).key == "lost"
    await store.close()


async def test_deadlocks_are_run_again(postgres_url: str) -> None:
    """Two transactions lock two rows crosswise: PostgreSQL ends one of them, the driver repeats it."""
    opened = await open_store(postgres_url)
    first, second = await create(opened), await create(opened)
    locked = [asyncio.Event(), asyncio.Event()]
    tries = [0, 0]

    async def cross(tx: Transaction, me: int) -> None:
        tries[me] += 1
        mine, other = (first, second) if me == 0 else (second, first)
        await tx.row("lock_job", 1, mine.id)
        locked[me].set()
        await locked[1 - me].wait()
        await tx.row("lock_job", 1, other.id)

    await asyncio.gather(
        opened.driver.transact_slow(lambda tx: cross(tx, 0)), opened.driver.transact_slow(lambda tx: cross(tx, 1))
    )
    assert sorted(tries) == [1, 2]
    await opened.close()


async def test_not_for_ever(opened: Store) -> None:
    tries = 0

    async def body(tx: Transaction) -> None:
        nonlocal tries
        tries += 1
        raise asyncpg.SerializationError("again")

    with pytest.raises(StoreUnavailable):
        await opened.driver.transact_slow(body)
    assert tries == 8


async def test_a_collision_is_told_apart(opened: Store) -> None:
    async def body(tx: Transaction) -> None:
        await tx.sql("INSERT INTO tenants (name, created_at) VALUES ('default', 0)")

    with pytest.raises(Collision):
        await opened.driver.transact_slow(body)


async def test_a_migration_under_prepared_statements(opened: Store, postgres_url: str) -> None:
    """Another node migrates: what this one has prepared no longer fits, and is prepared again."""
    job = await create(opened)
    await opened.get_record(1, job.id)
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("ALTER TABLE jobs ADD COLUMN later text")
    await connection.close()
    assert (await opened.get_record(1, job.id)).id == job.id
    assert (await opened.pause_job(1, job.id)).state == "paused"


async def test_behind_a_pooler(postgres_url: str) -> None:
    """No prepared statement and no session state outlives a transaction."""
    store = await open_store(f"{postgres_url}?pooler=transaction")
    answers = await store.create_jobs([new(key="a", tags=["t"]), new(key="b")])
    assert len((await store.list_jobs(1, JobFilter(tag="t"))).items) == 1
    assert await store.list_keys(1) == []
    driver = store.driver
    assert isinstance(driver, PostgresDriver)

    async def prepared(tx: Transaction) -> int:
        return int((await tx.sql("SELECT count(*) AS n FROM pg_prepared_statements WHERE name <> ''"))[0]["n"])

    assert await store.driver.read(prepared) == 0
    heard: list[str] = []
    store.listen(heard.append)()
    await store.notify("due")
    assert len(answers) == 2
    await store.close()


async def test_hints_can_be_switched_off(postgres_url: str) -> None:
    store = await open_store(f"{postgres_url}?hints=off")
    store.listen(lambda _: None)()
    await store.notify("due")
    connection = await asyncpg.connect(postgres_url)
    listening = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
    assert await connection.fetchval(listening) == 0
    await connection.close()
    await store.close()


class TestHints:
    async def test_from_node_to_node(self, postgres_url: str) -> None:
        here, there = await open_store(postgres_url), await open_store(postgres_url)
        heard: asyncio.Queue[str] = asyncio.Queue()
        here.listen(heard.put_nowait)
        first = [await asyncio.wait_for(heard.get(), 5) for _ in HINTS]
        assert sorted(first) == sorted(HINTS), "one of each on connecting: something may have been said before"
        await there.notify("orders")
        assert await asyncio.wait_for(heard.get(), 5) == "orders"
        await here.close()
        await there.close()

    async def test_many_become_few(self, postgres_url: str) -> None:
        store = await open_store(postgres_url)
        heard: asyncio.Queue[str] = asyncio.Queue()
        store.listen(heard.put_nowait)
        for _ in HINTS:
            await asyncio.wait_for(heard.get(), 5)
        for _ in range(1000):
            await store.notify("due")
        await store.notify("orders")
        got = [await asyncio.wait_for(heard.get(), 5) for _ in range(2)]
        assert sorted(got) == ["due", "orders"], "a thousand at once are one"
        sent = asyncio.get_running_loop().time()
        for _ in range(1000):
            await store.notify("due")
        assert await asyncio.wait_for(heard.get(), 5) == "due"
        assert asyncio.get_running_loop().time() - sent > 0.01, "not before the gap is over"
        assert heard.empty()
        await store.close()

    async def test_the_listener_comes_back_by_itself(self, postgres_url: str) -> None:
        store = await open_store(postgres_url)
        heard: asyncio.Queue[str] = asyncio.Queue()
        end = store.listen(heard.put_nowait)
        for _ in HINTS:
            await asyncio.wait_for(heard.get(), 5)
        connection = await asyncpg.connect(postgres_url)
        killed = await connection.fetchval(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND query LIKE 'LISTEN%'"
        )
        assert killed == 1
        again = [await asyncio.wait_for(heard.get(), 10) for _ in HINTS]
        assert sorted(again) == sorted(HINTS)
        await store.notify("due")
        assert await asyncio.wait_for(heard.get(), 5) == "due"
        end()
        end()
        await connection.close()
        await store.close()

    async def test_a_lost_hint_is_no_error(self, postgres_server: PostgresServer, postgres_url: str) -> None:
        store = await open_store(f"{postgres_url}?timeout=2")
        postgres_server.stop(immediate=True)
        await store.notify("due")
        await asyncio.sleep(0)
        postgres_server.start()
        assert await store.now() > 0
        await store.close()
