"""Arrays on their way to PostgreSQL and back, written by us instead of by asyncpg."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.store.postgres import arrays
from onthedot.store.postgres.arrays import bigints, bigints_of, booleans, booleans_of, tell_arrays, texts, texts_of

WHOLE = st.integers(-(2**63), 2**63 - 1)
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
ECHO = """
SELECT $1::bigint[]::text AS n, $2::text[]::text AS w, $3::boolean[]::text AS b,
    $1::bigint[] AS numbers, $2::text[] AS words, $3::boolean[] AS facts
"""
AWKWARD: list[tuple[list[int | None], list[str | None], list[bool | None]]] = [
    ([], [], []),
    ([0], [""], [False]),
    ([None], [None], [None]),
    ([1, -1, 2**63 - 1, -(2**63), 255, 256], ["a,b", '"', "\\", "NULL", "{}", "ünï 🕰", " "], [True, False]),
    ([None, 7, None, -8], [None, "x", None], [None, True, None, False]),
    (list(range(-500, 500)), [f"{number}-{number}" for number in range(1000)], [n % 3 == 0 for n in range(1000)]),
]


@given(st.lists(st.none() | WHOLE))
def test_bigints_come_back(values):
    assert bigints_of(bigints(values)) == values


@given(st.lists(st.none() | WORDS))
def test_texts_come_back(values):
    assert texts_of(texts(values)) == values


@given(st.lists(st.none() | st.booleans()))
def test_booleans_come_back(values):
    assert booleans_of(booleans(values)) == values


@pytest.mark.parametrize(("numbers", "words", "facts"), AWKWARD)
async def test_the_server_sees_and_says_what_it_does_with_asyncpg_alone(empty_postgres_url, numbers, words, facts):
    ours, theirs = await asyncpg.connect(empty_postgres_url), await asyncpg.connect(empty_postgres_url)
    try:
        await tell_arrays(ours)
        here = await ours.fetchrow(ECHO, numbers, words, facts)
        assert here is not None
        assert here == await theirs.fetchrow(ECHO, numbers, words, facts)
        assert (here["numbers"], here["words"], here["facts"]) == (numbers, words, facts)
    finally:
        await ours.close()
        await theirs.close()


async def test_the_door_of_asyncpg_is_still_there(empty_postgres_url, monkeypatch):
    """Without it all goes on, at asyncpg's own speed; this is how we hear of it."""
    written: list[Any] = []

    def noted(encoder: Callable[[Any], bytes], values: Any) -> bytes:
        written.append(values)
        return encoder(values)

    monkeypatch.setattr(arrays, "bigints", partial(noted, bigints))
    monkeypatch.setattr(arrays, "texts", partial(noted, texts))
    monkeypatch.setattr(arrays, "booleans", partial(noted, booleans))
    connection = await asyncpg.connect(empty_postgres_url)
    try:
        await tell_arrays(connection)
        await connection.fetchrow(ECHO, [1], ["a"], [True])
    finally:
        await connection.close()
    assert written == [[1], ["a"], [True]]


@pytest.mark.parametrize("read", [bigints_of, booleans_of, texts_of])
def test_more_than_one_dimension_is_refused(read):
    with pytest.raises(ValueError, match="2 dimensions"):
        read((2).to_bytes(4) + bytes(16))


def test_what_is_no_bigint_is_refused():
    with pytest.raises(OverflowError):
        bigints([2**63])
