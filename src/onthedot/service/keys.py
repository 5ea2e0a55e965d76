"""API keys and sessions: shown once, stored as a hash; and the principal of a request."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable

import msgspec

from onthedot.clock import Clock
from onthedot.errors import Invalid, Unauthorized
from onthedot.model.actor import ChangeActor
from onthedot.model.key import SETTING_KEY, ApiKey, ApiKeyCreated, ApiKeySpec, Scope
from onthedot.service.base import ServiceBase
from onthedot.service.checking import TargetRules
from onthedot.service.repeats import IdempotencyKey, idempotency
from onthedot.settings import Settings
from onthedot.store import Store

__all__ = ["DEFAULT_TENANT", "KeyVerbs", "Principal", "Session", "hash_key", "new_key"]

DEFAULT_TENANT = 1
KNOWN_FOR = 2.0  # seconds that an answer about a key is believed: a revoked key dies this late on other nodes
REMEMBERED_FOR = 60.0  # … while the store is away, for what may be read then
KNOWN_MOST = 10_000
SHOWN = 12  # characters of a key that stay readable, so that a person can tell keys apart


class Session(msgspec.Struct, frozen=True):
    """What the cookie of somebody who logged in holds."""

    token: str


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and what they may do. `key_id` None: nobody needs a key here."""

    tenant: int
    scope: Scope
    key_id: int | None = None
    name: str | None = None  # of the key

    def actor(self, address: str | None = None) -> ChangeActor:
        """Who is written down for what they change."""
        if self.key_id is None:
            return ChangeActor(kind="open", name="open", address=address)
        return ChangeActor(kind="key", name=self.name or "", key_id=self.key_id, address=address)


ANYBODY = Principal(tenant=DEFAULT_TENANT, scope="admin")
"""Who asks an open server."""


def new_key() -> str:
    return "otd_" + secrets.token_urlsafe(32)


def hash_key(key: str) -> str:
    """A plain hash will do: 256 random bits can't be guessed, slow hashing is for what people choose."""
    return hashlib.sha256(key.encode()).hexdigest()


def _key_of(credential: str, salt: str) -> str:
    """A key that its maker can be told again for as long as the salt is kept, and that is stored nowhere: whoever reads
    the database has the salt, and of the credential a hash."""
    made = hmac.digest(credential.encode(), f"onthedot api key {salt}".encode(), "sha256")
    return "otd_" + base64.urlsafe_b64encode(made).decode().rstrip("=")


def _hash_session(token: str) -> str:
    """Never the hash of a key: what is stored of the one can't be found as the other."""
    return hash_key(f"session {token}")


class KeyVerbs(ServiceBase):
    def __init__(self, store: Store, targets: TargetRules, clock: Clock, settings: Settings) -> None:
        super().__init__(store, targets, clock, settings)
        self._known: dict[str, tuple[float, Principal]] = {}
        self._may_be_open = settings.loopback and "keys" not in settings.auth
        self._locked = (0.0, False)  # (believed until, whether a key was ever made); once made, for ever
        self.when_key_made: Callable[[], None] = lambda: None

    async def create_key(
        self,
        spec: ApiKeySpec,
        tenant: int = DEFAULT_TENANT,
        idempotency_key: IdempotencyKey | None = None,
        credential: str | None = None,
    ) -> ApiKeyCreated:
        """`tenant` asks, with the API key or the session `credential`: a repeat by the same one gets the same key."""
        if spec.name == SETTING_KEY:
            told = "this name is reserved for the key that comes from the setting ADMIN_KEY"
            raise Invalid.one("name", told, given=spec.name, accepted="any other name")
        salt, key, repeat = "", new_key(), None
        if idempotency_key is not None and credential is not None:
            repeat = idempotency("create_key", idempotency_key, hash_key(f"asker {credential}"), body=spec)
        if repeat is not None and credential is not None:
            salt = secrets.token_urlsafe(32)
            key = _key_of(credential, salt)
        made = await self.store.create_key(
            spec, hash_key(key), key[:SHOWN], salt=salt, tenant=tenant, idempotency=repeat
        )
        self.forget_keys()
        self.when_key_made()
        if made.salt != salt and credential is not None:
            key = _key_of(credential, made.salt)
        return ApiKeyCreated(key=key, info=made.info, first=made.first)

    async def set_admin_key(self, key: str) -> bool:
        """The key that the settings name: stored hashed, valid from now on, the one before it revoked."""
        shown = key[: SHOWN if len(key) >= 3 * SHOWN else 4]  # of a short one most would be readable
        changed = await self.store.set_admin_key(DEFAULT_TENANT, hash_key(key), shown)
        if changed:
            self.forget_keys()
            self.when_key_made()
        return changed

    async def tenant_named(self, name: str) -> int:
        return await self.store.tenant_named(name)

    async def list_keys(self, tenant: int) -> list[ApiKey]:
        return list(await self.store.list_keys(tenant))

    async def revoke_key(self, tenant: int, key_id: int) -> None:
        try:
            await self.store.revoke_key(tenant, key_id)
        finally:  # also where nobody knows whether it was written
            self.forget_keys()

    async def authenticate(self, bearer: str | Session | None, *, used: bool = True) -> Principal:
        """The principal of a request, or Unauthorized. Without a key only an open server answers. `used` False: only
        to see whether a session still lives."""
        if bearer is None:
            if await self.is_open():
                return ANYBODY
            raise Unauthorized(
                "API key required: send `Authorization: Bearer otd_…` (create a key with `onthedot keys create`)"
            )
        is_session = isinstance(bearer, Session)
        hashed = _hash_session(bearer.token) if isinstance(bearer, Session) else hash_key(bearer)
        looked_up = hashed if used else f"look {hashed}"  # a look must not stand for a use
        known = self._known.get(looked_up)
        if known is None or known[0] <= self.clock.monotonic():
            found = await (self.store.find_session(hashed, used=used) if is_session else self.store.find_key(hashed))
            if found is None:
                self._known.pop(looked_up, None)
                ended = "the session has ended: log in again"
                raise Unauthorized(ended if is_session else "the API key is unknown, expired or revoked")
            if len(self._known) >= KNOWN_MOST:
                self._known.clear()
            principal = Principal(tenant=found.tenant, scope=found.scope, key_id=found.id, name=found.name)
            known = self._known[looked_up] = (self.clock.monotonic() + KNOWN_FOR, principal)
        return known[1]

    async def log_in(self, key: str, address: str | None = None) -> tuple[Session, Principal]:
        """A session of its own: what lies in the browser is not the key, and ends without it."""
        principal = await self.authenticate(key)
        assert principal.key_id is not None
        session = Session(secrets.token_urlsafe(32))
        actor = principal.actor(address)
        await self.store.create_session(_hash_session(session.token), principal.key_id, principal.tenant, actor)
        return session, principal

    async def log_out(self, session: Session, address: str | None = None) -> bool:
        """Whether there was such a session. Other nodes believe in it for two more seconds at most."""
        hashed = _hash_session(session.token)
        ended = await self.store.end_session(hashed, address)
        self._known.pop(hashed, None)
        self._known.pop(f"look {hashed}", None)
        return ended

    def known_principal(self, bearer: str | None) -> Principal | None:
        """What `authenticate` would say without asking the store; None: it would ask, or refuse."""
        now = self.clock.monotonic()
        if bearer is None:
            until, locked = self._locked
            return ANYBODY if self._may_be_open and not locked and until > now else None
        known = self._known.get(hash_key(bearer))
        return None if known is None or known[0] <= now else known[1]

    def remembered_principal(self, bearer: str | None) -> Principal | None:
        """What the store said of this key within the last minute, for when it can't be asked; None: nothing good. What
        it said since, and a revocation on this node, counts."""
        since = self.clock.monotonic() - REMEMBERED_FOR + KNOWN_FOR
        if bearer is None:
            until, locked = self._locked
            return ANYBODY if self._may_be_open and not locked and until > max(0.0, since) else None
        known = self._known.get(hash_key(bearer))
        return None if known is None or known[0] <= since else known[1]

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
