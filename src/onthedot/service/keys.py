"""API keys: made once, shown once, kept as a hash; and who a request comes from."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable

import msgspec

from onthedot.clock import Clock
from onthedot.errors import Unauthorized
from onthedot.model.key import ApiKey, ApiKeyCreated, ApiKeySpec, Scope
from onthedot.service.checking import TargetRules
from onthedot.service.wired import Wired
from onthedot.settings import Settings
from onthedot.store import Store

__all__ = ["DEFAULT_TENANT", "KeyVerbs", "Principal", "hash_key", "new_key"]

DEFAULT_TENANT = 1
KNOWN_FOR = 2.0  # seconds that an answer about a key is believed: a revoked key dies this late on other nodes
KNOWN_MOST = 10_000
SHOWN = 12  # characters of a key that stay readable, so that a person can tell keys apart


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and what they may do. `key_id` None: nobody needs a key here."""

    tenant: int
    scope: Scope
    key_id: int | None = None


ANYBODY = Principal(tenant=DEFAULT_TENANT, scope="admin")
"""Who asks an open server."""


def new_key() -> str:
    return "otd_" + secrets.token_urlsafe(32)


def hash_key(key: str) -> str:
    """A plain hash will do: 256 random bits can't be guessed, slow hashing is for what people choose."""
    return hashlib.sha256(key.encode()).hexdigest()


class KeyVerbs(Wired):
    def __init__(self, store: Store, targets: TargetRules, clock: Clock, settings: Settings) -> None:
        super().__init__(store, targets, clock, settings)
        self._known: dict[str, tuple[float, Principal]] = {}
        self._may_be_open = settings.loopback and "keys" not in settings.auth
        self._locked = (0.0, False)  # (believed until, whether a key was ever made); once made, for ever
        self.when_key_made: Callable[[], None] = lambda: None

    async def create_key(self, spec: ApiKeySpec) -> ApiKeyCreated:
        key = new_key()
        info = await self.store.create_key(spec, hash_key(key), key[:SHOWN])
        self.forget_keys()
        self.when_key_made()
        return ApiKeyCreated(key=key, info=info)

    async def tenant_named(self, name: str) -> int:
        return await self.store.tenant_named(name)

    async def list_keys(self, tenant: int) -> list[ApiKey]:
        return list(await self.store.list_keys(tenant))

    async def revoke_key(self, tenant: int, key_id: int) -> None:
        await self.store.revoke_key(tenant, key_id)
        self.forget_keys()

    async def authenticate(self, bearer: str | None) -> Principal:
        """The principal of a request, or Unauthorized. Without a key only an open server answers."""
        if bearer is None:
            if await self.is_open():
                return ANYBODY
            raise Unauthorized("an API key is needed: `Authorization: Bearer otd_…` (`onthedot keys create` makes one)")
        hashed = hash_key(bearer)
        known = self._known.get(hashed)
        if known is None or known[0] <= self.clock.monotonic():
            found = await self.store.find_key(hashed)
            if found is None:
                self._known.pop(hashed, None)
                raise Unauthorized("the API key is unknown, expired or revoked")
            if len(self._known) >= KNOWN_MOST:
                self._known.clear()
            principal = Principal(tenant=found.tenant, scope=found.scope, key_id=found.id)
            known = self._known[hashed] = (self.clock.monotonic() + KNOWN_FOR, principal)
        return known[1]

    def known_principal(self, bearer: str | None) -> Principal | None:
        """What `authenticate` would say without asking the store; None: it would ask, or refuse."""
        now = self.clock.monotonic()
        if bearer is None:
            until, locked = self._locked
            return ANYBODY if self._may_be_open and not locked and until > now else None
        known = self._known.get(hash_key(bearer))
        return None if known is None or known[0] <= now else known[1]

    async def is_open(self) -> bool:
        """For one person on one machine: bound to loopback, no key ever made, and nobody asked for keys."""
        if not self._may_be_open:
            return False
        until, locked = self._locked
        if not locked and until <= self.clock.monotonic():
            locked = await self.store.any_key()
            self._locked = (self.clock.monotonic() + KNOWN_FOR, locked)
        return not locked

    def forget_keys(self) -> None:
        """Ask the store anew, also whether a key was ever made."""
        self._known.clear()
        self._locked = (0.0, False)
