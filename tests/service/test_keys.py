"""Who may come in: keys are shown once, kept as hashes, and forgotten soon after they are revoked."""

from __future__ import annotations

import pytest

from onthedot.errors import NotFound, Unauthorized
from onthedot.model.duration import Duration
from onthedot.model.key import ApiKeySpec
from onthedot.service import Service
from onthedot.service.keys import hash_key, new_key
from onthedot.settings import Settings
from tests.service.conftest import TENANT, Agreeable


async def test_a_key_opens_with_its_scope(service):
    made = await service.create_key(ApiKeySpec(name="ci", scope="write"))
    assert made.key.startswith("otd_")
    assert made.key.startswith(made.info.prefix)
    principal = await service.authenticate(made.key)
    assert (principal.tenant, principal.scope, principal.key_id) == (TENANT, "write", made.info.id)


async def test_only_its_hash_is_kept(service, store):
    made = await service.create_key(ApiKeySpec(name="ci"))
    rows = await store.driver.read(lambda tx: tx.sql("SELECT * FROM api_keys"))
    stored = " ".join(str(value) for value in tuple(rows[0]))
    assert made.key not in stored
    assert hash_key(made.key) in stored


async def test_keys_are_never_the_same():
    assert len({new_key() for _ in range(100)}) == 100
    assert all(len(new_key()) > 40 for _ in range(10))


@pytest.mark.parametrize("bearer", ["", "otd_unknown", "ü", "x" * 10_000])
async def test_an_unknown_key_is_refused(service, bearer):
    with pytest.raises(Unauthorized, match="unknown, expired or revoked"):
        await service.authenticate(bearer)


async def test_without_any_key_made_this_machine_is_let_in(service):
    assert await service.is_open()
    principal = await service.authenticate(None)
    assert (principal.tenant, principal.scope, principal.key_id) == (TENANT, "admin", None)


async def test_the_first_key_closes_the_door(service):
    assert await service.is_open()
    made = await service.create_key(ApiKeySpec(name="first", scope="admin"))
    with pytest.raises(Unauthorized, match="API key required"):
        await service.authenticate(None)
    await service.revoke_key(TENANT, made.info.id)
    assert not await service.is_open()


async def test_a_key_made_elsewhere_closes_the_door_within_two_seconds(service, store, fake_clock):
    assert await service.is_open()
    await store.create_key(ApiKeySpec(name="elsewhere"), "hash", "otd_x")
    await fake_clock.advance(2.1)
    assert not await service.is_open()


@pytest.mark.parametrize("settings", [Settings(host="0.0.0.0"), Settings(auth=("keys",))])
async def test_beyond_this_machine_or_when_told_nobody_comes_in_without(store, fake_clock, settings):
    service = Service(store, Agreeable(), fake_clock, settings)
    with pytest.raises(Unauthorized):
        await service.authenticate(None)


async def test_a_revoked_key_stops_at_once_here_and_within_two_seconds_elsewhere(service, store, fake_clock):
    other = Service(store, Agreeable(), fake_clock, Settings())
    made = await service.create_key(ApiKeySpec(name="ci"))
    await service.authenticate(made.key)
    await other.authenticate(made.key)
    await service.revoke_key(TENANT, made.info.id)
    with pytest.raises(Unauthorized):
        await service.authenticate(made.key)
    await fake_clock.advance(2.1)
    with pytest.raises(Unauthorized):
        await other.authenticate(made.key)


async def test_an_expired_key_stops_working(service, fake_clock):
    made = await service.create_key(ApiKeySpec(name="short", expires=Duration.parse("1m")))
    assert (await service.authenticate(made.key)).scope == "read"
    await fake_clock.advance(63)
    with pytest.raises(Unauthorized):
        await service.authenticate(made.key)


async def test_a_key_is_looked_up_once_for_two_seconds(service, store, monkeypatch):
    made = await service.create_key(ApiKeySpec(name="busy"))
    looked = []
    find = store.find_key

    async def counted(hashed: str):
        looked.append(hashed)
        return await find(hashed)

    monkeypatch.setattr(store, "find_key", counted)
    for _ in range(5):
        await service.authenticate(made.key)
    assert len(looked) == 1


async def test_keys_are_listed_without_themselves(service):
    made = await service.create_key(ApiKeySpec(name="ci", scope="admin"))
    (listed,) = await service.list_keys(TENANT)
    assert listed == made.info
    assert made.key not in str(listed)


async def test_no_tenant_revokes_another_s_key(service):
    made = await service.create_key(ApiKeySpec(name="ci"))
    with pytest.raises(NotFound):
        await service.revoke_key(TENANT + 1, made.info.id)
    assert await service.authenticate(made.key)


async def test_another_tenant_s_key_is_another_tenant(service):
    made = await service.create_key(ApiKeySpec(name="b", tenant="other"))
    assert (await service.authenticate(made.key)).tenant != TENANT
