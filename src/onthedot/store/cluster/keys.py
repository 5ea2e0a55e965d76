"""API keys: only their hashes are kept; a key works until it expires or is revoked, by the database's clock."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.errors import Conflict, NotFound, SettingsError
from onthedot.model.instant import format_instant
from onthedot.model.key import SETTING_KEY, ApiKey, ApiKeySpec, Scope
from onthedot.store.driver import Collision, Row, Transaction
from onthedot.store.jobs.audit_log import write_audit
from onthedot.store.jobs.idempotency import Idempotency, once
from onthedot.store.topic import Topic

__all__ = ["FoundKey", "KeptKey", "Keys", "found_key"]


class FoundKey(msgspec.Struct, frozen=True, kw_only=True):
    """Whose key it is, and what it may do."""

    id: int
    tenant: int
    scope: Scope
    name: str


class KeptKey(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a new key without the key itself. `first`: there was none before."""

    info: ApiKey
    salt: str
    first: bool


class Keys(Topic):
    async def create_key(
        self,
        spec: ApiKeySpec,
        hashed: str,
        prefix: str,
        *,
        salt: str = "",
        tenant: int = 1,
        idempotency: Idempotency | None = None,
    ) -> KeptKey:
        """Keep a new key; its tenant comes into being with its first key. `salt` is kept with a repeatable answer, for
        the one of `tenant` who asked to make the same key of."""

        async def create(tx: Transaction) -> KeptKey:
            first = await tx.row("any_key") is None
            now = await tx.now()
            await tx.execute("ensure_tenant", spec.tenant, now)
            expires_at = None if spec.expires is None else now + int(spec.expires)
            row = await tx.row("insert_key", spec.tenant, spec.name, spec.scope, hashed, prefix, now, expires_at)
            assert row is not None
            said = f"key {row['id']}: {spec.name} ({spec.scope})"
            await write_audit(tx, "create_key", row["tenant"], now, summary=said, always=True)
            return KeptKey(info=_key(row), salt=salt, first=first)

        try:
            return await self.as_asked(lambda tx: once(tx, tenant, idempotency, KeptKey, lambda: create(tx)))
        except Collision:
            raise Conflict("this API key already exists; create another one") from None

    async def tenant_named(self, name: str) -> int:
        """A tenant comes into being with its first key."""
        row = await self.driver.read(lambda tx: tx.row("find_tenant", name))
        if row is None:
            raise NotFound(f"tenant {name!r} not found; a tenant exists once it has an API key")
        return int(row["id"])

    async def list_keys(self, tenant: int) -> list[ApiKey]:
        """All keys of a tenant, also those that no longer work."""
        return [_key(row) for row in await self.driver.read(lambda tx: tx.rows("list_keys", tenant))]

    async def revoke_key(self, tenant: int, key_id: int) -> None:
        """From now on the key does not work; to revoke it twice changes nothing."""

        async def body(tx: Transaction) -> None:
            if not await tx.execute("revoke_key", tenant, key_id):
                raise NotFound(f"API key {key_id} not found")
            await tx.execute("drop_sessions_of_key", key_id)
            await write_audit(tx, "revoke_key", tenant, await tx.now(), summary=f"key {key_id}", always=True)

        await self.as_asked(body)

    async def find_key(self, hashed: str) -> FoundKey | None:
        """Who comes with this key; None if it is unknown, expired or revoked."""
        row = await self.driver.read(lambda tx: tx.row("find_key", hashed))
        return None if row is None else found_key(row)

    async def set_admin_key(self, tenant: int, hashed: str, prefix: str) -> bool:
        """Make this the one key that comes from the settings; the one before it is revoked. False: it was already.

        Nodes that start at the same time wait for each other; of nodes with different keys the last one wins.
        """
        if _is_set(await self.driver.read(lambda tx: tx.rows("find_setting_keys", hashed, SETTING_KEY)), hashed):
            return False

        async def body(tx: Transaction) -> bool:
            await tx.execute("lock_keys")
            valid = await tx.rows("find_setting_keys", hashed, SETTING_KEY)
            if _is_set(valid, hashed):
                return False
            now, ours = await tx.now(), await tx.row("find_any_key", hashed)
            if ours is None:
                row = await tx.row("insert_key", "default", SETTING_KEY, "admin", hashed, prefix, now, None)
                assert row is not None
                said = f"key {row['id']}: {SETTING_KEY} (admin)"
                await write_audit(tx, "create_key", tenant, now, summary=said, always=True)
            elif ours["tenant"] != tenant:
                raise SettingsError("ADMIN_KEY is a key of another tenant; choose another one")
            else:
                await tx.execute("revive_setting_key", ours["id"], SETTING_KEY)
                said = f"key {ours['id']}: {SETTING_KEY} (admin), again"
                await write_audit(tx, "create_key", tenant, now, summary=said, always=True)
            for row in valid:
                if row["hashed"] != hashed:
                    await tx.execute("revoke_key", row["tenant"], row["id"])
                    await tx.execute("drop_sessions_of_key", row["id"])
                    said = f"key {row['id']}: {SETTING_KEY} was changed"
                    await write_audit(tx, "revoke_key", row["tenant"], now, summary=said, always=True)
            return True

        return await self.driver.transact_slow(body)

    async def any_key(self) -> bool:
        """Whether a key was ever made: from then on nobody comes in without one, even when all are revoked."""
        return await self.driver.read(lambda tx: tx.row("any_key")) is not None


def _is_set(rows: Sequence[Row], hashed: str) -> bool:
    """It works for everything, and no other key that came from the settings works."""
    return [(row["hashed"], row["name"], row["scope"]) for row in rows] == [(hashed, SETTING_KEY, "admin")]


def found_key(row: Row) -> FoundKey:
    return FoundKey(id=row["id"], tenant=row["tenant"], scope=row["scope"], name=row["name"])


def _key(row: Row) -> ApiKey:
    return ApiKey(
        id=row["id"],
        name=row["name"],
        scope=row["scope"],
        tenant=row["tenant_name"],
        prefix=row["prefix"],
        created_at=format_instant(row["created_at"]),
        expires_at=None if row["expires_at"] is None else format_instant(row["expires_at"]),
        revoked_at=None if row["revoked_at"] is None else format_instant(row["revoked_at"]),
    )
