"""Migrations: once, in order, by whoever comes first; a database that is ahead is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from onthedot.errors import StoreAhead, StoreError
from onthedot.store import open_driver, open_store
from onthedot.store.driver import Driver, Transaction
from onthedot.store.migrate import Migration, check_version, known_migrations, migrate

ONE = Migration(1, "one", False, "CREATE TABLE one (id bigint);")
TWO = Migration(
    2, "two", False, "CREATE TABLE two (id bigint); INSERT INTO two VALUES (1);\nINSERT INTO one VALUES (2);"
)
BROKEN = Migration(3, "broken", False, "CREATE TABLE three (id bigint); INSERT INTO nowhere VALUES (1);")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(f"empty_{request.param}_url")
    return found


@pytest.fixture
async def driver(url: str) -> AsyncIterator[Driver]:
    opened = await open_driver(url)
    yield opened
    await opened.close()


async def numbers(driver: Driver) -> list[int]:
    async def body(tx: Transaction) -> list[int]:
        return [row["number"] for row in await tx.rows("versions")]

    return await driver.read(body)


async def exists(driver: Driver, table: str) -> bool:
    async def body(tx: Transaction) -> bool:
        try:
            await tx.sql(f"SELECT 1 FROM {table}")
        except Exception:
            return False
        return True

    return await driver.read(body)


async def test_what_is_missing_is_applied_in_order(driver: Driver) -> None:
    assert await migrate(driver, [ONE]) == ["one"]
    assert await migrate(driver, [ONE, TWO]) == ["two"]
    assert await migrate(driver, [ONE, TWO]) == []
    assert await numbers(driver) == [1, 2]


async def test_one_that_fails_leaves_nothing_of_itself(driver: Driver) -> None:
    with pytest.raises(Exception, match="nowhere"):
        await migrate(driver, [ONE, TWO, BROKEN])
    assert await numbers(driver) == [1, 2]
    assert await exists(driver, "two")
    assert not await exists(driver, "three")


async def test_a_database_that_is_ahead_is_refused(driver: Driver) -> None:
    await migrate(driver, [ONE, Migration(2, "incompatible", True, "CREATE TABLE two (id bigint);")])
    with pytest.raises(StoreAhead, match="0002 incompatible"):
        await migrate(driver, [ONE])
    with pytest.raises(StoreAhead):
        await check_version(driver, [ONE])


async def test_ahead_but_compatible_is_fine(driver: Driver) -> None:
    """The release before runs beside the new one during an upgrade."""
    await migrate(driver, [ONE, TWO])
    assert await migrate(driver, [ONE]) == []
    assert await check_version(driver, [ONE]) == []


async def test_several_migrate_at_once(url: str) -> None:
    """Nodes start together: each migration happens once, and nobody fails."""
    opened = [await open_driver(url) for _ in range(1 if url.startswith("sqlite") else 4)]
    try:
        done = await asyncio.gather(*(migrate(driver, [ONE, TWO]) for driver in opened * (4 // len(opened))))
        assert sorted(name for names in done for name in names) == ["one", "two"]
        assert await numbers(opened[0]) == [1, 2]
    finally:
        for driver in opened:
            await driver.close()


async def test_opening_without_migrating(url: str) -> None:
    with pytest.raises(StoreError, match="onthedot migrate"):
        await open_store(url, migrated=False)
    first = await open_store(url)
    assert await numbers(first.driver) == [migration.number for migration in known_migrations(first.driver.dialect)]
    await first.close()
    second = await open_store(url, migrated=False)
    assert await second.now() > 0
    await second.close()


def test_a_migration_must_say_whether_it_breaks() -> None:
    for dialect in ("sqlite", "postgres"):
        assert all(isinstance(migration.breaking, bool) for migration in known_migrations(dialect))
