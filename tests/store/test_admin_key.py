"""The key that comes from the settings: one works at a time, whatever node starts when."""

from __future__ import annotations

import asyncio

import pytest

from onthedot.errors import SettingsError
from onthedot.model.key import SETTING_KEY, ApiKeySpec
from onthedot.store import AuditFilter, Store
from tests.store.conftest import Times


async def valid(store: Store) -> list[str]:
    return [hashed for hashed in ("a", "b", "c") if await store.find_key(hashed) is not None]


async def test_it_is_set_once(store: Store, times: Times) -> None:
    assert not await store.any_key()
    assert await store.set_admin_key(1, "a", "otd_")
    assert not await store.set_admin_key(1, "a", "otd_"), "the same on the next node, or after a restart"
    found = await store.find_key("a")
    assert found is not None
    assert (found.tenant, found.scope, found.name) == (1, "admin", SETTING_KEY)
    assert await store.any_key()
    assert len(await store.list_keys(1)) == 1


async def test_changing_it_revokes_the_one_before_and_its_sessions(store: Store, times: Times) -> None:
    await store.create_key(ApiKeySpec(name="mine", scope="admin"), "c", "p")
    await store.set_admin_key(1, "a", "otd_")
    old = await store.find_key("a")
    assert old is not None
    await store.create_session("session", old.id)
    assert await store.set_admin_key(1, "b", "otd_")
    assert await valid(store) == ["b", "c"]
    assert await store.find_session("session") is None
    page = await store.list_audit(1, AuditFilter())
    assert [(entry.verb, entry.actor_kind) for entry in page.items[:2]] == [
        ("revoke_key", "system"),
        ("create_key", "system"),
    ]


async def test_the_old_one_can_come_back(store: Store, times: Times) -> None:
    for hashed in ("a", "b", "a"):
        assert await store.set_admin_key(1, hashed, "otd_")
        assert await valid(store) == [hashed]


async def test_one_that_was_revoked_by_hand_works_again_after_a_restart(store: Store, times: Times) -> None:
    await store.set_admin_key(1, "a", "otd_")
    (listed,) = await store.list_keys(1)
    await store.revoke_key(1, listed.id)
    assert await valid(store) == []
    assert await store.set_admin_key(1, "a", "otd_")
    assert await valid(store) == ["a"]


async def test_a_key_that_was_made_by_hand_is_taken_over(store: Store, times: Times) -> None:
    await store.create_key(ApiKeySpec(name="mine", scope="read"), "a", "p")
    assert await store.set_admin_key(1, "a", "otd_")
    found = await store.find_key("a")
    assert found is not None
    assert found.scope == "admin"


async def test_not_from_another_tenant(store: Store, times: Times) -> None:
    await store.create_key(ApiKeySpec(name="mine", scope="admin", tenant="other"), "a", "p")
    with pytest.raises(SettingsError, match="another tenant"):
        await store.set_admin_key(1, "a", "otd_")


async def test_nodes_that_start_at_once_with_different_keys_leave_one(store: Store, times: Times) -> None:
    await asyncio.gather(*(store.set_admin_key(1, hashed, "otd_") for hashed in "abcabc"))
    assert len(await valid(store)) == 1
