"""The conformance suite's own store: the same on both databases, with a clock that the test turns on both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import asyncpg
import pytest

from onthedot.clock import FakeClock
from onthedot.store import Store, open_store
from onthedot.store.driver import Transaction
from tests.store.many_jobs import fill_postgres, fill_sqlite

START = 1_700_000_000_000


class Times:
    """The database's time, whichever database it is: `await times.set(ms)`, `await times.advance(ms)`."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self._store = store
        self._clock = clock
        self.now = START

    async def set(self, now: int) -> int:
        self._clock.step_wall(now - self._clock.now_ms())
        self.now = now
        if self._store.driver.dialect == "postgres":

            async def turn(tx: Transaction) -> None:
                await tx.sql("UPDATE test_clock SET now_ms = $1", now)

            await self._store.driver.transact_slow(turn)
        return now

    async def advance(self, ms: int) -> int:
        return await self.set(self.now + ms)


@pytest.fixture
async def store(store_url: str, fake_clock: FakeClock) -> AsyncIterator[Store]:
    if store_url.startswith("postgresql"):
        connection = await asyncpg.connect(store_url)
        await connection.execute(f"CREATE TABLE test_clock AS SELECT {START}::bigint AS now_ms")
        await connection.close()
    opened = await open_store(store_url, clock=fake_clock, now="(SELECT now_ms FROM test_clock)")
    yield opened
    await opened.close()


@pytest.fixture
async def times(store: Store, fake_clock: FakeClock) -> Times:
    times = Times(store, fake_clock)
    await times.set(START)
    return times


@pytest.fixture(scope="session")
def many_jobs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], str]:
    """`many_jobs("postgres", 1_000_000)`: the address of a database with that many jobs. To be read only."""
    made: dict[tuple[str, int], str] = {}

    def address(dialect: str, size: int) -> str:
        if (dialect, size) not in made:
            if dialect == "sqlite":
                made[dialect, size] = fill_sqlite(tmp_path_factory.mktemp("many") / f"{size}.db", size)
            else:
                server = request.getfixturevalue("postgres_server")
                template = request.getfixturevalue("migrated_template")
                made[dialect, size] = server.create_database(f"many_{size}", template=template)
                fill_postgres(made[dialect, size], size)
        return made[dialect, size]

    return address
