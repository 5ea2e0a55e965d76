"""Sessions of the pages: they end by logout, by time and with their key."""

from __future__ import annotations

import pytest

from onthedot.model.decoding import convert
from onthedot.model.key import ApiKeySpec
from onthedot.store import SESSION_IDLE, SESSION_LONGEST, FoundKey, Store
from tests.store.conftest import Times
from tests.store.given import fetch

HOUR = 3_600_000


@pytest.fixture
async def key_id(store: Store, times: Times) -> int:
    return (await store.create_key(ApiKeySpec(name="k", scope="write"), "hash", "otd_")).info.id


async def test_a_session_stands_for_its_key_until_it_is_ended(store: Store, key_id: int) -> None:
    await store.create_session("s1", key_id)
    await store.create_session("s2", key_id)
    assert await store.find_session("s1") == FoundKey(id=key_id, tenant=1, scope="write", name="k")
    assert await store.find_session("hash") is None, "a key is no session"
    assert await store.find_key("s1") is None, "nor is a session a key"
    assert await store.end_session("s1")
    assert not await store.end_session("s1")
    assert await store.find_session("s1") is None
    assert await store.find_session("s2") is not None


async def test_it_ends_when_it_is_not_used(store: Store, times: Times, key_id: int) -> None:
    await store.create_session("s", key_id)
    await times.advance(SESSION_IDLE - 1)
    assert await store.find_session("s", used=False) is not None
    await times.advance(1)
    assert await store.find_session("s") is None


async def test_using_it_keeps_it_but_not_for_ever(store: Store, times: Times, key_id: int) -> None:
    await store.create_session("s", key_id)
    for _ in range(SESSION_LONGEST // (8 * HOUR) - 1):
        await times.advance(8 * HOUR)
        assert await store.find_session("s") is not None
    await times.advance(8 * HOUR)
    assert await store.find_session("s") is None


async def test_it_ends_with_its_key(store: Store, times: Times, key_id: int) -> None:
    short = (await store.create_key(convert({"name": "short", "expires": "1h"}, ApiKeySpec), "hash-2", "otd_")).info
    await store.create_session("of-short", short.id)
    await store.create_session("s", key_id)
    await store.revoke_key(1, key_id)
    assert await store.find_session("s") is None
    assert await store.find_session("of-short") is not None
    await times.advance(HOUR)
    assert await store.find_session("of-short") is None


async def test_those_that_ran_out_are_swept_by_the_next_login(store: Store, times: Times, key_id: int) -> None:
    await store.create_session("old", key_id)
    await times.advance(SESSION_IDLE)
    await store.create_session("new", key_id)
    assert [row["hashed"] for row in await fetch(store, "SELECT hashed FROM sessions")] == ["new"]
