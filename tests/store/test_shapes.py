"""Rows with names: what a statement that names a shape becomes on each database."""

from __future__ import annotations

from typing import Literal

import pytest

from onthedot.store.queries import Queries
from onthedot.store.shapes import Shape, fill_in


class Fruit(Shape, frozen=True):
    name: str
    weight: int | None
    ripe: bool
    kind: Literal["apple", "pear"]


JSON = "value ->> 0 AS name, value ->> 1 AS weight, value ->> 2 AS ripe, value ->> 3 AS kind"


@pytest.mark.parametrize(
    ("text", "sqlite", "postgres"),
    [
        ("{columns Fruit}", "name, weight, ripe, kind", None),
        ("{columns Fruit f}", "f.name, f.weight, f.ripe, f.kind", None),
        ("{columns Fruit f weight=f.grams * 2}", "f.name, f.grams * 2 AS weight, f.ripe, f.kind", None),
        ("{values Fruit}", "?1, ?2, ?3, ?4", "$1::text, $2::bigint, $3::boolean, $4::text"),
        (
            "{rows Fruit}",
            f"(SELECT {JSON} FROM json_each(?1)) AS x",
            "unnest($1::text[], $2::bigint[], $3::boolean[], $4::text[]) AS x (name, weight, ripe, kind)",
        ),
    ],
)
def test_shapes_are_written_out(text: str, sqlite: str, postgres: str | None) -> None:
    assert fill_in(text, "sqlite") == sqlite
    assert fill_in(text, "postgres") == (postgres or sqlite)


def test_their_parameters_follow_those_of_the_statement() -> None:
    assert fill_in("f({Fruit.ripe}) + ?2", "sqlite") == "f(?5) + ?2"
    assert fill_in("f({Fruit.ripe}) + $2", "postgres") == "f($5::boolean) + $2"
    numbered = fill_in("{rows Fruit place} WHERE a = $1", "postgres")
    assert numbered.startswith("unnest($2::text[], ")
    assert numbered.endswith("WITH ORDINALITY AS x (name, weight, ripe, kind, place) WHERE a = $1")


def test_a_shape_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        fill_in("{columns Vegetable}", "sqlite")


def test_statements_share_parts_and_words() -> None:
    text = """
-- part: ripe
-- What can be eaten.
f.ripe AND {part light}

-- part: light
f.weight < $1

-- name: pick
SELECT 1 FROM fruit f WHERE {part ripe} AND f.until < {NEVER};
"""
    assert Queries("postgres", "x", [text])["pick"] == (
        "SELECT 1 FROM fruit f WHERE f.ripe AND f.weight < $1 AND f.until < 9223372036854775807"
    )
    with pytest.raises(ValueError, match="twice"):
        Queries("postgres", "x", [text, text])


def test_no_statement_writes_a_policy_as_a_number() -> None:
    """60,000 ms, "never" and their like have names in `plan` and `model`."""
    from pathlib import Path

    import onthedot.store

    for file in Path(onthedot.store.__path__[0]).glob("*/queries/*.sql"):
        text = "\n".join(line for line in file.read_text().splitlines() if not line.startswith("--"))
        for number in ("60000", "9223372036854775807", "15000", "65536", "'redrive')"):
            assert number not in text, f"{number} in {file}"
