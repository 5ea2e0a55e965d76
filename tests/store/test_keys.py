"""API keys: found by their hash while they work."""

from __future__ import annotations

import pytest

from onthedot.errors import Conflict, NotFound
from onthedot.model.decoding import convert
from onthedot.model.instant import format_instant
from onthedot.model.key import ApiKeySpec
from onthedot.store import FoundKey, Store
from tests.store.conftest import START, Times
from tests.store.given import fetch


def key(**fields: object) -> ApiKeySpec:
    return convert({"name": "k", **fields}, ApiKeySpec)


async def test_a_key_is_found_by_its_hash(store: Store, times: Times) -> None:
    assert not await store.any_key()
    made = (await store.create_key(key(scope="write"), "hash-1", "otd_abcd")).info
    assert (made.name, made.scope, made.tenant, made.prefix) == ("k", "write", "default", "otd_abcd")
    assert (made.created_at, made.expires_at, made.revoked_at) == (format_instant(START), None, None)
    assert await store.any_key()
    assert await store.find_key("hash-1") == FoundKey(id=made.id, tenant=1, scope="write", name="k")
    assert await store.find_key("hash-2") is None


async def test_it_works_until_it_expires(store: Store, times: Times) -> None:
    made = (await store.create_key(key(expires="90s"), "h", "p")).info
    assert made.expires_at == format_instant(START + 90_000)
    await times.advance(89_999)
    assert await store.find_key("h") is not None
    await times.advance(1)
    assert await store.find_key("h") is None


async def test_it_works_until_it_is_revoked(store: Store, times: Times) -> None:
    made = (await store.create_key(key(), "h", "p")).info
    await times.advance(10)
    await store.revoke_key(1, made.id)
    assert await store.find_key("h") is None
    await times.advance(10)
    await store.revoke_key(1, made.id)
    (listed,) = await store.list_keys(1)
    assert listed.revoked_at == format_instant(START + 10)
    assert await store.any_key(), "revoking the last key must not open the door"


async def test_a_tenant_comes_with_its_first_key(store: Store, times: Times) -> None:
    mine = (await store.create_key(key(), "h1", "p")).info
    theirs = (await store.create_key(key(tenant="acme", scope="admin"), "h2", "p")).info
    more = (await store.create_key(key(tenant="acme"), "h3", "p")).info
    found = await store.find_key("h2")
    assert found is not None
    assert found.tenant != 1
    assert [listed.id for listed in await store.list_keys(1)] == [mine.id]
    assert [listed.id for listed in await store.list_keys(found.tenant)] == [theirs.id, more.id]
    assert {listed.tenant for listed in await store.list_keys(found.tenant)} == {"acme"}
    with pytest.raises(NotFound):
        await store.revoke_key(1, theirs.id)
    assert await store.find_key("h2") is not None


async def test_the_same_hash_twice_is_refused(store: Store, times: Times) -> None:
    await store.create_key(key(), "h", "p")
    with pytest.raises(Conflict):
        await store.create_key(key(), "h", "p")
    assert len(await fetch(store, "SELECT id FROM api_keys")) == 1
