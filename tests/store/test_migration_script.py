"""The script that `onthedot migrate --sql` prints makes the same tables as migrating does."""

from __future__ import annotations

import sqlite3

import asyncpg
import pytest

from onthedot.store import open_store
from onthedot.store.migrate import known_migrations
from onthedot.store.migration_script import migration_script
from tests.store.schema_text import schema_text
from tests.store.test_golden_schema import GOLDEN


async def test_on_postgresql(empty_postgres_url: str) -> None:
    known = known_migrations("postgres")
    connection = await asyncpg.connect(empty_postgres_url)
    try:
        await connection.execute(migration_script("postgres", known[:5]))
        await connection.execute(migration_script("postgres", known[5:]))
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute(migration_script("postgres", known[-1:]))
    finally:
        await connection.close()
    store = await open_store(empty_postgres_url, migrated=False)
    try:
        assert await schema_text(store) == (GOLDEN / "postgres.sql").read_text()
    finally:
        await store.close()


async def test_in_a_schema_of_its_own(empty_postgres_url: str) -> None:
    connection = await asyncpg.connect(empty_postgres_url)
    try:
        await connection.execute(migration_script("postgres", known_migrations("postgres"), schema='"my jobs"'))
    finally:
        await connection.close()
    sign = "&" if "?" in empty_postgres_url else "?"
    store = await open_store(f"{empty_postgres_url}{sign}schema=my%20jobs", migrated=False)
    await store.close()


async def test_on_sqlite(empty_sqlite_url: str) -> None:
    script = migration_script("sqlite", known_migrations("sqlite"))
    connection = sqlite3.connect(empty_sqlite_url.removeprefix("sqlite:///"))
    connection.executescript(script)
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE constraint failed: meta"):
        connection.executescript(migration_script("sqlite", known_migrations("sqlite")[-1:]))
    connection.close()
    store = await open_store(empty_sqlite_url, migrated=False)
    try:
        assert await schema_text(store) == (GOLDEN / "sqlite.sql").read_text()
    finally:
        await store.close()


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_nothing_pending_is_a_comment(dialect: str) -> None:
    assert migration_script(dialect, []).startswith("-- On the Dot")
    assert migration_script(dialect, []).count("\n") == 1
