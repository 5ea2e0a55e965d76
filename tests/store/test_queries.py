"""Named statements: loading, and putting lists together from fixed parts."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import onthedot.store
from onthedot.store.queries import Queries

TEXT = """
-- Comments are no statements.

-- name: now
SELECT {now} AS now;

-- name: list
-- and may stand inside.
SELECT {columns} FROM jobs WHERE tenant = $1 AND {where} LIMIT $2;

-- name: columns.all
id, $1::text AS label

-- name: where.tag
tag = $1

-- name: where.between
at >= $1 AND at < $2 AND at <> $1
"""


def queries() -> Queries:
    return Queries("postgres", "clock()", [TEXT])


def test_statements_by_name() -> None:
    assert queries()["now"] == "SELECT clock() AS now"
    assert queries().names() == {"now", "list", "columns.all", "where.tag", "where.between"}
    with pytest.raises(KeyError, match="nowhere"):
        queries()["nowhere"]


def test_the_runs_of_a_job_are_a_range_of_ids() -> None:
    text = "-- name: a\nSELECT 1 FROM runs r WHERE {of_job r j.id} OR {of_job r %s}"
    assert Queries("sqlite", "x", [text % "?1"])["a"] == (
        "SELECT 1 FROM runs r WHERE (r.id >= j.id || '-' AND r.id < j.id || '.')"
        " OR (r.id >= ?1 || '-' AND r.id < ?1 || '.')"
    )
    assert Queries("postgres", "x", [text % "$1"])["a"].endswith(
        "(r.id >= $1::bigint || '-' AND r.id < $1::bigint || '.')"
    )


def test_parts_go_to_their_places_and_count_on() -> None:
    assert queries()["list+columns.all+where.tag+where.between"] == (
        "SELECT id, $3::text AS label FROM jobs "
        "WHERE tenant = $1 AND tag = $4 AND at >= $5 AND at < $6 AND at <> $5 LIMIT $2"
    )


def test_no_filter_is_true() -> None:
    assert queries()["list+columns.all"].endswith("AND true LIMIT $2")
    sqlite = Queries("sqlite", "now_ms()", ["-- name: a\nSELECT ?1 {where} {rest}\n-- name: rest.b\n?1"])
    assert sqlite["a+rest.b"] == "SELECT ?1 1 ?2"


def test_a_part_without_its_place_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="place"):
        queries()["now+where.tag"]


def test_a_name_twice_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="twice"):
        Queries("postgres", "x", [TEXT, TEXT])


def test_both_dialects_have_the_same_statements() -> None:
    assert Queries("sqlite", "x").names() == Queries("postgres", "x").names()


def _words(text: str) -> list[str]:
    """Names of statements: those that fragments are added to stand before a brace."""
    return [word.partition("{")[0] for word in text.split("+")]


def test_each_statement_is_used() -> None:
    """A statement that nobody asks for is a promise that nobody tests."""
    source = "\n".join(file.read_text() for file in Path(onthedot.store.__path__[0]).rglob("*.py"))
    words = {word for text in re.findall(r'"([a-z0-9_.+{}]+)"', source) for word in _words(text)}
    fragments = {name for name in Queries("sqlite", "x").names() if name.startswith(("where.", "columns.", "joins."))}
    unused = Queries("sqlite", "x").names() - words - fragments
    assert unused == set()


def test_no_module_of_the_store_writes_sql_of_its_own() -> None:
    """Values never get into SQL as text, because only the .sql files and the drivers hold any. Nobody outside does."""
    verbs = re.compile(r"\b(SELECT\s.+\sFROM|INSERT INTO|UPDATE\s.+\sSET|DELETE FROM)\b", re.DOTALL)
    store = Path(onthedot.store.__path__[0])
    for file in store.parent.rglob("*.py"):
        if store / "postgres" in file.parents or store / "sqlite" in file.parents:
            continue
        if file.name in ("partitions.py", "catalog.py"):  # tables can't be parameters
            continue
        if file.name == "migration_script.py":  # prints statements for somebody else to run
            continue
        if file.parent.name == "importers":  # reads a database of somebody else
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not verbs.search(node.value), f"{file.name}: {node.value[:80]}"
