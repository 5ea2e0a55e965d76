"""Migrating from zero gives exactly the schema that is written down in golden/.

After a new migration: `GOLDEN=write pytest tests/store/test_golden_schema.py`, then read the difference.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from onthedot.store import Store, open_store
from onthedot.store.migrate import known_migrations
from onthedot.store.runs.row import ClaimedRow, NewRun, Run
from tests.store.schema_text import schema_text

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(params=["sqlite", "postgres"])
async def fresh(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    """Migrated just now: not copied from a database that was migrated for others."""
    url = request.getfixturevalue(f"empty_{request.param}_url")
    opened = await open_store(url)
    yield opened
    await opened.close()


async def test_migrating_from_zero_gives_the_golden_schema(fresh: Store) -> None:
    found = await schema_text(fresh)
    file = GOLDEN / f"{fresh.driver.dialect}.sql"
    if os.environ.get("GOLDEN") == "write":
        file.write_text(found)
    assert found == file.read_text(), "the schema is not what golden/ says: see this file's first lines"


def test_both_stores_have_the_same_migrations() -> None:
    sqlite, postgres = known_migrations("sqlite"), known_migrations("postgres")
    assert [(m.number, m.name, m.breaking) for m in sqlite] == [(m.number, m.name, m.breaking) for m in postgres]
    numbers = [m.number for m in sqlite]
    assert numbers == sorted(set(numbers)), "each once; a number that is given to another change may be missing"


def _tables(file: Path) -> dict[str, list[str]]:
    """Table → its columns, as the golden file has them."""
    tables = {}
    for name, body in re.findall(r"^CREATE TABLE (\w+) \((.*?)^\)", file.read_text(), re.MULTILINE | re.DOTALL):
        words = [line.strip().split(" ")[0] for line in body.splitlines() if line.strip()]
        tables[name] = [word for word in words if re.fullmatch(r"[a-z_]+", word)]
    return tables


def test_both_stores_have_the_same_tables_and_columns() -> None:
    """P8 begins here. Sequences are PostgreSQL's own; SQLite keeps its in a table."""
    sqlite, postgres = _tables(GOLDEN / "sqlite.sql"), _tables(GOLDEN / "postgres.sql")
    sqlite.pop("sequences")
    postgres.pop("history_default")
    assert sqlite.keys() == postgres.keys()
    for table, columns in sqlite.items():
        assert columns == postgres[table], table


def test_no_id_is_narrow() -> None:
    """int4 runs out: every integer is 64 bits wide."""
    narrow = re.findall(
        r"^\s+\w+ (?:integer|smallint|serial)\b.*$", (GOLDEN / "postgres.sql").read_text(), re.MULTILINE
    )
    assert narrow == []


def test_the_columns_of_runs_are_declared_once() -> None:
    """What `runs.row` says of them is what the tables have; the projections are parts of it."""
    declared = set(Run.__struct_fields__)
    for dialect in ("sqlite", "postgres"):
        assert set(_tables(GOLDEN / f"{dialect}.sql")["runs"]) == declared, dialect
    assert set(NewRun.__struct_fields__) <= declared
    assert set(ClaimedRow.__struct_fields__) - {"now"} <= declared
